"""Parts of deploy/helm/generate."""
