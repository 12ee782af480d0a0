#$ --build-context files=dir --build-context image=docker-image://other:1
FROM base:1
COPY --from=files x.txt /
COPY --from=image /y /y
RUN --mount=from=files,target=/mnt ls /mnt
RUN --mount=from=image,target=/mnt ls /mnt
