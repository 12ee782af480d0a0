mkdir -p d/sub empty
for file in f g sub/h; do echo $file > d/$file; done
chmod 755 d/f
tar --owner=0 --group=0 --mtime=@1000000000 -cf archive.tar d
find . -exec touch -d @1000000000 {} +
