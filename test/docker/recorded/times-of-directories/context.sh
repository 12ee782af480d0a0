mkdir -p d/sub/deep d/empty d2; echo x > d/x; echo z > d/sub/deep/z; ln -s x d/link; ln -s /nowhere d/sub/dangling; echo g > d2/g
find . -depth -exec touch -h -d @1000000000 {} +
