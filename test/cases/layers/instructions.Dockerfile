ARG VERSION=1
FROM base:$VERSION
ARG VERSION
ARG BUILD_TYPE=release
ARG NOTHING
ENV A=1 PATH_TO=/opt/$BUILD_TYPE
LABEL maintainer=someone version=$VERSION
MAINTAINER someone
WORKDIR /srv
WORKDIR app
COPY a.txt dir/ ./
COPY --chown=app:staff --chmod=640 a.txt /owned/
COPY --chown=1000:1000 dir /numbers
COPY --exclude=*.md dir /excluded
COPY <<end /document
text $A
end
ADD a.txt /added/
ADD http://files.test/data.bin /fetched/
ADD --checksum=sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73 http://files.test/data.bin /checked/
RUN echo $A $BUILD_TYPE $NOTHING
RUN ["/bin/echo", "$A", "b c"]
RUN <<end
echo one
echo $A
end
RUN <<end python3
print("two")
end
USER app
RUN id
USER 1000:1000
RUN id
WORKDIR /srv/of-user
RUN pwd
SHELL ["/bin/bash", "-c"]
RUN echo bash
EXPOSE 80
VOLUME /data
STOPSIGNAL SIGINT
HEALTHCHECK CMD true
ONBUILD RUN true
ENTRYPOINT ["a"]
CMD b
