FROM base:1
ARG ID=one
RUN --mount=type=cache,target=/cache make
RUN --mount=type=cache,id=$ID,target=/cache,uid=1000,mode=0700,sharing=locked make
RUN --mount=type=tmpfs,target=/tmp,size=1048576 make
RUN --mount=type=bind,source=dir,target=/mnt cat /mnt/x.txt
RUN --mount=source=a.txt,target=/mnt/a.txt cat /mnt/a.txt
RUN --mount=from=other:1,source=/etc,target=/mnt,rw ls /mnt
RUN --mount=type=cache,from=other:1,source=/var,target=/var/cache make
RUN --mount=type=bind,source=dir,target=/one --mount=type=cache,target=/two <<end
cat /one/x.txt
end
