# The env-server: environments and the connection to the learner; no torch, no compiler. From the repository's root:
#
#   docker build -f docker/envserver.Dockerfile -t localhost/kubebeast/envserver:0.2.0 .
#
# ENVSERVER_EXTRAS: extras of the distribution. "native" alone omits ale-py, which is GPL-2.0. Without native, messages
# go through grpcio, and the image is 27 MB smaller. "native,legacy,legacy-atari" is for environments of older gym and
# atari-py; KubeBeast's own code is the same.
# PIP_PACKAGES: further packages with environments, e.g. "minigrid". No lock has their hashes.
# NATIVE_WHEEL: name of a wheel of kubebeast-native in native/build/wheels. If empty, the native core is compiled here.
# PYTHON_IMAGE: an index of images for several architectures. With native, it must be based on Debian 12, because the
# native core is linked with the gRPC of Debian 12.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM ${PYTHON_IMAGE} AS build
# A fixed seed, and no time stamps in compiled files, so that the same sources produce the same layers.
ENV PYTHONHASHSEED=0 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY locks/pip.txt locks/build.txt locks/
RUN python3 -m venv /opt/build && /opt/build/bin/pip install -q --require-hashes -r locks/pip.txt -r locks/build.txt \
 && python3 -m venv /opt/kubebeast && /opt/kubebeast/bin/pip uninstall -q -y setuptools

ARG ENVSERVER_EXTRAS=atari,native
ARG PIP_PACKAGES=""
COPY constraints.txt docker/slim ./
COPY locks/requirements.py locks/envserver.txt locks/envserver-legacy.txt locks/
COPY protos/pyproject.toml protos/
COPY services/common/pyproject.toml services/common/
COPY services/envserver/pyproject.toml services/envserver/
COPY native/pyproject.toml native/
ARG NATIVE_WHEEL=""
# Compilers for atari-py and, if there is no wheel, for the native core.
RUN case ",${ENVSERVER_EXTRAS}," in *,legacy-atari,*) atari="make zlib1g-dev" ;; esac \
 && case "${NATIVE_WHEEL},${ENVSERVER_EXTRAS}," in ,*,native,* | ,native,*) \
      native="libgrpc++-dev liblz4-dev libprotobuf-dev ninja-build pkg-config protobuf-compiler protobuf-compiler-grpc \
        python3-dev" \
      ;; esac \
 && if [ -n "${atari}${native}" ]; then \
      apt-get update -qq \
      && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends cmake g++ ${atari} ${native} >/dev/null \
      ; fi
RUN case ",${ENVSERVER_EXTRAS}," in *,legacy*) lock=locks/envserver-legacy.txt ;; *) lock=locks/envserver.txt ;; esac \
 && python3 locks/requirements.py --lock "$lock" "services/envserver[${ENVSERVER_EXTRAS}]" >requirements.txt \
 && export PIP_PYTHON=/opt/kubebeast/bin/python PIP_BUILD_CONSTRAINT=/src/constraints.txt \
 && /opt/build/bin/pip install -q --no-compile --require-hashes -c "$lock" -r requirements.txt \
 && if [ -n "${PIP_PACKAGES}" ]; then \
      sed 's/ *\\$//; /^ *--hash=/d' "$lock" >versions.txt \
      && /opt/build/bin/pip install -q --no-compile -c versions.txt ${PIP_PACKAGES} \
      ; fi \
 && ./slim /opt/kubebeast \
 && /opt/kubebeast/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/kubebeast

COPY protos protos
COPY native native
RUN case ",${ENVSERVER_EXTRAS}," in *,native,*) \
      if [ -n "${NATIVE_WHEEL}" ]; then \
        install -D -t /wheels "native/build/wheels/${NATIVE_WHEEL}" \
        ; else \
        /opt/build/bin/pip wheel -q --no-deps --no-build-isolation -w /wheels \
          --config-settings cmake.define.CMAKE_UNITY_BUILD=ON ./native \
        ; fi \
      ;; esac
COPY services/common services/common
COPY services/envserver services/envserver
RUN /opt/build/bin/pip wheel -q --no-deps --no-build-isolation -w /wheels ./protos ./services/common ./services/envserver \
 && PIP_PYTHON=/opt/kubebeast/bin/python /opt/build/bin/pip install -q --no-compile --no-deps --no-index --find-links /wheels \
    --prefix /opt/code $(ls /wheels | sed 's/-.*//') \
 && /opt/kubebeast/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/code

FROM ${PYTHON_IMAGE}
ARG ENVSERVER_EXTRAS=atari,native
RUN case ",${ENVSERVER_EXTRAS}," in *,native,*) \
      apt-get update -qq \
      && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        libgrpc++1.51 liblz4-1 libprotobuf32 >/dev/null \
      && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache /var/log/* \
      ;; esac
COPY --from=build /opt/kubebeast /opt/kubebeast
COPY --from=build /opt/code /opt/kubebeast
ENV PATH=/opt/kubebeast/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp
USER 10001:10001
# 9091: /healthz, /readyz and /metrics, with --http-address 0.0.0.0:9091.
EXPOSE 9091
ENTRYPOINT ["kubebeast-envserver"]

ARG VERSION=0.2.0
ARG REVISION=""
ARG CREATED=""
ARG SOURCE_URL=""
LABEL org.opencontainers.image.title="kubebeast-envserver" \
      org.opencontainers.image.description="Hosts environments and streams their observations to a KubeBeast learner" \
      org.opencontainers.image.vendor="The KubeBeast authors" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.url="${SOURCE_URL}" \
      org.opencontainers.image.source="${SOURCE_URL}"
