mkdir d
for file in old recent; do echo $file > d/$file; done
ln -s old d/link
touch -d @-86400 d/old
touch -d @1000000000 d/recent
touch -h -d @-5 d/link
touch -d @-3 d
tar --owner=0 --group=0 -cf d.tar d
