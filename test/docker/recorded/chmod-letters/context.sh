mkdir d
for mode in 644 755 6755; do mkdir d/d$mode; echo $mode > d/f$mode; chmod $mode d/d$mode d/f$mode; done
find d -exec touch -d @1000000000 {} +
