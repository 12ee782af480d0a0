printf '%s\n' '**/*.md' '!docs' 'built*' '!built' > .dockerignore
mkdir -p docs built context/docs context/logs/kept context/docs/logs
for file in docs/guide.md docs/guide.txt built/a.md built/a.o built.o context/docs/a.md context/docs/b context/logs/a context/logs/kept/b context/docs/logs/c; do
  echo $file > $file
done
find . -exec touch -d @1000000000 {} +
