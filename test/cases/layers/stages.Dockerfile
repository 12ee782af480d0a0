FROM base:1 AS build
WORKDIR /src
COPY a.txt .
RUN make
FROM other:1 AS tools
RUN tool
FROM build AS test
RUN make test
FROM base:1
COPY --from=build /src/a.txt /app/
COPY --from=build --chown=app --chmod=755 /src/a.txt /src/b.txt /owned/
COPY --from=tools --parents --exclude=*.md /usr/bin/tool /parents/
COPY --from=other:1 /etc/os-release /etc/
COPY --from=1 /t /t
USER app
WORKDIR relative
COPY --from=build /src/a.txt .
RUN --mount=from=test,source=/src,target=/mnt true
