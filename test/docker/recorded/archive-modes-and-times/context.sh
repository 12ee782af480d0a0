mkdir -p s/sub/deep s/empty; echo f > s/file; chmod 4755 s/file; echo y > s/sub/deep/y; ln -s file s/link; ln -s /nowhere s/sub/dangling; chmod 1777 s/sub
find s -depth -exec touch -h -d @1000000000 {} +
tar -C s --sort=name --format=gnu -cf a.tar .
