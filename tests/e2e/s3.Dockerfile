# An S3 server that keeps its objects in memory, for the end-to-end tests. From the repository's root:
#
#   docker build -f tests/e2e/s3.Dockerfile -t localhost/kubebeast/s3:0.2.0 .
ARG PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM ${PYTHON_IMAGE}
WORKDIR /srv
COPY locks/s3.txt .
RUN python3 -m venv /opt/s3 \
 && /opt/s3/bin/pip install -q --no-cache-dir --disable-pip-version-check --require-hashes -r s3.txt
USER 10001:10001
EXPOSE 5000
ENTRYPOINT ["/opt/s3/bin/moto_server", "--host", "0.0.0.0"]
