import type { FileSystem } from "./file-system.ts";

/**
 * Returns a file system that keeps its first answers, for many questions about one moment. It remembers a limited number of
 * answers, the first ones, as those paths are asked for repeatedly. For the rest of a large context, `files` is asked each time.
 */
export function rememberFiles(files: FileSystem): FileSystem {
  return {
    readDirectory: remember((path) => files.readDirectory(path)),
    stat: remember((path) => files.stat(path)),
    readLink: remember((path) => files.readLink(path)),
  };
}

const maxRemembered = 10_000;

/** Failures are not remembered: they end the search that asked. */
function remember<Answer extends object | string>(ask: (path: string) => Answer): (path: string) => Answer {
  const answers = new Map<string, Answer>();
  return (path) => {
    const known = answers.get(path);
    if (known !== undefined) return known;
    const answer = ask(path);
    if (answers.size < maxRemembered) answers.set(path, answer);
    return answer;
  };
}
