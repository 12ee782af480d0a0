mkdir -m 700 root source
echo 1 > root/of-archive
echo 1 > source/of-context
tar --owner=7 --group=8 --numeric-owner --mtime=@1000000000 -C root -cf root.tar .
rm -r root
find . -exec touch -d @1000000000 {} +
