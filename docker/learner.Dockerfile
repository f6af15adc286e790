# The learner: PyTorch and the native core. From the repository's root:
#
#   docker build -f docker/learner.Dockerfile -t localhost/kubebeast/learner:0.2.0 .
#   docker build -f docker/learner.Dockerfile -t localhost/kubebeast/learner:0.2.0-cuda --build-arg TORCH_VARIANT=cuda .
#
# TORCH_VARIANT: cpu, or cuda for PyTorch from PyPI, with the hashes of the lock, and the compiler that torch.compile
# calls on a GPU. TORCH_INDEX_URL: index of the CPU builds, which are not on PyPI. If empty, the pip configuration of
# the base image applies.
# LEARNER_EXTRAS: extras of the distribution. The image has no environments unless an extra adds some: with envs,
# `kubebeast eval` plays the environments of gymnasium and KubeBeast; with video, `kubebeast render` also writes mp4;
# atari, which is GPL-2.0, is for Atari games. vectorenv is the fleet as a vector environment, for another trainer.
# NATIVE_WHEEL: name of a wheel of kubebeast-native in native/build/wheels. If empty, the native core is compiled here.
# PYTHON_IMAGE: an index of images for several architectures. It must be based on Debian 12, because the native core is
# linked with the gRPC of Debian 12.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM ${PYTHON_IMAGE} AS build
# A fixed seed, and no time stamps in compiled files, so that the same sources produce the same layers.
ENV PYTHONHASHSEED=0 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
ARG NATIVE_WHEEL=""
# slim needs binutils to strip PyTorch's libraries.
RUN if [ -z "${NATIVE_WHEEL}" ]; then \
      native="cmake g++ libgrpc++-dev liblz4-dev libprotobuf-dev ninja-build pkg-config protobuf-compiler \
        protobuf-compiler-grpc python3-dev" \
      ; fi \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends binutils ${native} >/dev/null
WORKDIR /src
COPY locks/pip.txt locks/build.txt locks/
RUN python3 -m venv /opt/build && /opt/build/bin/pip install -q --require-hashes -r locks/pip.txt -r locks/build.txt \
 && python3 -m venv /opt/kubebeast && /opt/kubebeast/bin/pip uninstall -q -y setuptools
# The pip of /opt/build installs packages for the image's Python.
ENV PIP_PYTHON=/opt/kubebeast/bin/python

# Three layers of the final image, the least frequently changed first: PyTorch, other libraries, our code.
COPY docker/slim docker/install-torch ./
COPY locks/requirements.py locks/learner.txt locks/
COPY protos/pyproject.toml protos/
COPY native/pyproject.toml native/
COPY services/broker/pyproject.toml services/broker/
COPY services/common/pyproject.toml services/common/
COPY services/envserver/pyproject.toml services/envserver/
COPY services/fleet/pyproject.toml services/fleet/
COPY services/learner/pyproject.toml services/learner/
COPY services/observe/pyproject.toml services/observe/
COPY services/runs/pyproject.toml services/runs/
COPY services/sweep/pyproject.toml services/sweep/
ARG TORCH_VARIANT=cpu
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu
RUN ./install-torch "${TORCH_VARIANT}" "${TORCH_INDEX_URL}" \
 && ./slim /opt/kubebeast \
 && /opt/kubebeast/bin/python -m compileall -q -f -j 0 -x /torch/testing/ --invalidation-mode unchecked-hash /opt/kubebeast

ARG LEARNER_EXTRAS=broker,fleet,gpu,observe,pool,sweep,tracing,vectorenv
RUN python3 locks/requirements.py --lock locks/learner.txt "services/learner[${LEARNER_EXTRAS}]" >requirements.txt \
 && /opt/build/bin/pip install -q --no-compile --require-hashes --prefix /opt/libraries -c locks/learner.txt -r requirements.txt \
 && ./slim /opt/libraries \
 && /opt/kubebeast/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/libraries

COPY protos protos
COPY native native
RUN if [ -n "${NATIVE_WHEEL}" ]; then \
      install -D -t /wheels "native/build/wheels/${NATIVE_WHEEL}" \
      ; else \
      PIP_PYTHON= /opt/build/bin/pip wheel -q --no-deps --no-build-isolation -w /wheels \
        --config-settings cmake.define.CMAKE_UNITY_BUILD=ON ./native \
      ; fi
COPY services/broker services/broker
COPY services/common services/common
COPY services/envserver services/envserver
COPY services/fleet services/fleet
COPY services/learner services/learner
COPY services/observe services/observe
COPY services/runs services/runs
COPY services/sweep services/sweep
RUN own=$(python3 locks/requirements.py --own "services/learner[${LEARNER_EXTRAS}]" | grep -vx ./native) \
 && PIP_PYTHON= /opt/build/bin/pip wheel -q --no-deps --no-build-isolation -w /wheels $own \
 && /opt/build/bin/pip install -q --no-compile --no-deps --no-index --find-links /wheels --prefix /opt/code \
    $(ls /wheels | sed 's/-.*//') \
 && /opt/kubebeast/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/code

FROM ${PYTHON_IMAGE}
ARG TORCH_VARIANT=cpu
RUN apt-get update -qq \
 && case ${TORCH_VARIANT} in cuda) compiler="gcc libc6-dev" ;; *) compiler="" ;; esac \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    libgrpc++1.51 liblz4-1 libprotobuf32 $compiler >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache /var/log/* \
 && install -d -o 10001 -g 10001 /runs
COPY --from=build /opt/kubebeast /opt/kubebeast
COPY --from=build /opt/libraries /opt/kubebeast
COPY --from=build /opt/code /opt/kubebeast
# Driver capabilities that the container runtime provides if the pod has a GPU; no other pod sees one.
ENV PATH=/opt/kubebeast/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp KUBEBEAST_SAVEDIR=/runs \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
# 4431: env-servers. 9090: /healthz, /readyz and /metrics, with --http-address 0.0.0.0:9090.
EXPOSE 4431 9090
ENTRYPOINT ["kubebeast"]
CMD ["learner", "--address", "0.0.0.0:4431", "--http-address", "0.0.0.0:9090"]

ARG VERSION=0.2.0
ARG REVISION=""
ARG CREATED=""
ARG SOURCE_URL=""
LABEL org.opencontainers.image.title="kubebeast-learner" \
      org.opencontainers.image.description="IMPALA learner for fleets of env-servers" \
      org.opencontainers.image.vendor="The KubeBeast authors" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.url="${SOURCE_URL}" \
      org.opencontainers.image.source="${SOURCE_URL}"
