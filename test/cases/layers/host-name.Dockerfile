#$ --build-arg BUILDKIT_SANDBOX_HOSTNAME=builder
FROM base:1
RUN hostname
