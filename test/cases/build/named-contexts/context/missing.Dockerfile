FROM base:1
RUN first
COPY --from=lib none.txt /
