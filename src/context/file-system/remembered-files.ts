import type { FileSystem } from "./file-system.ts";

/**
 * A file system as it was when it was first asked, for many questions about one moment. Memory is for the directories and
 * files that are asked for again and again, the first ones: of a large context the rest is asked of `files` each time.
 */
export function rememberFiles(files: FileSystem): FileSystem {
  return {
    readDirectory: remember((path) => files.readDirectory(path)),
    stat: remember((path) => files.stat(path)),
    readLink: remember((path) => files.readLink(path)),
  };
}

const maxRemembered = 10_000;

/** What fails is not remembered: it ends the search that asked. */
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
