# SPDX-License-Identifier: Apache-2.0
# Tenon for NVIDIA GPUs, from the packages of a build that has the cuda backend; NVIDIA's libraries come from NVIDIA's wheels, in whose folders
# the backend looks for them. WHEELS are those of the CUDA toolkit of the build, by its major version.
#
#   tools/package --deb
#   docker build -f tools/docker/cuda.Dockerfile -t tenon:cuda build/deb
#   docker run --gpus all tenon:cuda tenon devices

ARG DEBIAN=debian:12-slim

FROM ${DEBIAN}
ARG WHEELS="nvidia-cublas==13.* nvidia-cuda-nvrtc==13.* nvidia-cudnn-cu13==9.*"
RUN --mount=type=bind,target=/deb \
    apt-get update \
 && apt-get install --yes --no-install-recommends \
      /deb/libtenon1_*.deb /deb/tenon-backends_*.deb /deb/tenon-backend-cuda_*.deb /deb/tenon_*.deb python3-pip \
 && rm -rf /var/lib/apt/lists/* \
 && pip install --no-cache-dir --break-system-packages ${WHEELS} \
 && useradd --create-home tenon
# What NVIDIA's container toolkit adds to the container: the driver for computing.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER tenon
WORKDIR /home/tenon
CMD ["tenon", "doctor"]
