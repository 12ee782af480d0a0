FROM base:1
COPY . /all/
COPY --parents dir/sub/*.txt a.txt /parents/
COPY --link a.txt /linked/
COPY link link-to-directory /links/
COPY empty /empty/
COPY --chmod=u=rwX,go=rX dir /symbolic
ADD archive.tar /unpacked/
ADD --unpack=true archive.tar /unpacked-always/
ADD --unpack=false archive.tar /never/
COPY ["a.txt", "/name with spaces/ünïcode"]
RUN true
COPY dir /all/a.txt/
