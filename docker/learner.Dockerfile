# The learner: PyTorch and the native core, compiled here; no compiler in the image. From the repository's root:
#
#   docker build -f docker/learner.Dockerfile -t localhost/kubebeast/learner:0.1.0 .
#   docker build -f docker/learner.Dockerfile -t localhost/kubebeast/learner:0.1.0-cuda --build-arg TORCH_VARIANT=cu130 .
#
# TORCH_VARIANT: cpu, or a CUDA version that PyTorch publishes. TORCH_INDEX_URL: where it comes from; empty leaves it to
# the base image's pip configuration.
# LEARNER_EXTRAS: extras of the distribution. The image has no environments unless they name some: with envs
# `kubebeast eval` plays in it what comes with gymnasium and KubeBeast, with video `kubebeast render` writes mp4 too, and
# atari, which is GPL-2.0, is for Atari games.
# PYTHON_IMAGE: another one must be of Debian 12, whose gRPC the native core is linked with.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# The same seed and no time stamps in compiled files: the same sources give the same layers.
ENV PYTHONHASHSEED=0 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    cmake g++ libgrpc++-dev liblz4-dev libprotobuf-dev ninja-build pkg-config protobuf-compiler protobuf-compiler-grpc \
    python3-dev >/dev/null
RUN python3 -m venv /opt/kubebeast && /opt/kubebeast/bin/pip uninstall -q -y setuptools
WORKDIR /src

# Three layers of the final image, from what changes least to what changes most: PyTorch, other libraries, our code.
COPY constraints.txt docker/slim ./
ARG TORCH_VARIANT=cpu
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/${TORCH_VARIANT}
RUN PIP_EXTRA_INDEX_URL=${TORCH_INDEX_URL} /opt/kubebeast/bin/pip install -q --no-compile -c constraints.txt torch numpy \
 && ./slim /opt/kubebeast \
 && /opt/kubebeast/bin/python -m compileall -q -f -j 0 -x /torch/testing/ --invalidation-mode unchecked-hash /opt/kubebeast

ARG LEARNER_EXTRAS=fleet,gpu,pool,tracing
COPY docker/requirements.py ./
COPY protos/pyproject.toml protos/
COPY native/pyproject.toml native/
COPY services/common/pyproject.toml services/common/
COPY services/envserver/pyproject.toml services/envserver/
COPY services/learner/pyproject.toml services/learner/
RUN python3 requirements.py "services/learner[${LEARNER_EXTRAS}]" >requirements.txt \
 && /opt/kubebeast/bin/pip install -q --no-compile --prefix /opt/libraries -c constraints.txt -r requirements.txt \
 && ./slim /opt/libraries \
 && /opt/kubebeast/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/libraries

COPY protos protos
COPY native native
RUN PIP_CONSTRAINT=/src/constraints.txt PIP_BUILD_CONSTRAINT=/src/constraints.txt \
    /opt/kubebeast/bin/pip install -q --no-compile --no-deps --prefix /opt/code --config-settings cmake.define.CMAKE_UNITY_BUILD=ON ./native
COPY services/common services/common
COPY services/envserver services/envserver
COPY services/learner services/learner
RUN PIP_CONSTRAINT=/src/constraints.txt \
    /opt/kubebeast/bin/pip install -q --no-compile --no-deps --prefix /opt/code \
    $(python3 requirements.py --own "services/learner[${LEARNER_EXTRAS}]" | grep -vx ./native) \
 && /opt/kubebeast/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/code

FROM ${PYTHON_IMAGE}
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libgrpc++1.51 liblz4-1 libprotobuf32 >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache /var/log/* \
 && install -d -o 10001 -g 10001 /runs
COPY --from=build /opt/kubebeast /opt/kubebeast
COPY --from=build /opt/libraries /opt/kubebeast
COPY --from=build /opt/code /opt/kubebeast
# What the driver's container runtime makes available where the pod has a GPU; no other pod sees one.
ENV PATH=/opt/kubebeast/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp KUBEBEAST_SAVEDIR=/runs \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
# 4431: env-servers. 9090: /healthz, /readyz and /metrics, with --http-address 0.0.0.0:9090.
EXPOSE 4431 9090
ENTRYPOINT ["kubebeast"]
CMD ["learner", "--address", "0.0.0.0:4431", "--http-address", "0.0.0.0:9090"]

ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="kubebeast-learner" \
      org.opencontainers.image.description="IMPALA learner for fleets of env-servers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
