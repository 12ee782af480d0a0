/** Parses a Dockerfile of 5,000 lines once, and prints the milliseconds. */
import { parseDockerfile } from "../../src/dockerfile/parse.ts";

const block = [
  "# a comment",
  "ENV A=1 B=two \\",
  "    C=three",
  "COPY --chown=1:1 src/ package.json /app/",
  "RUN set -eux; \\",
  "    for each in a b c; do \\",
  '      echo "$each ${A:-x}"; \\',
  "    done",
  "WORKDIR /app",
  'CMD ["run", "it"]',
];
const text = ["FROM base:1", ...Array.from({ length: 500 }, () => block).flat()].join("\n");
const started = performance.now();
parseDockerfile(text, "Dockerfile");
const milliseconds = performance.now() - started;
// Not before: the first use of `process.stdout` takes milliseconds itself.
process.stdout.write(String(milliseconds));
