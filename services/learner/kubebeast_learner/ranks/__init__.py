"""Several learners that train one model: data-parallel ranks under torchrun, and sums over them that are exact."""
