FROM base
COPY build /srv/
RUN make
CMD ["serve"]
