FROM scratch
COPY a.txt /
ADD dir /dir/
ENV A=1
CMD ["/a"]
