import { mkdirSync } from "node:fs";
import type { GitProgram } from "../../builder/addresses/git-program.ts";
import type { Decompress } from "../../builder/job.ts";
import { BoughError, usageError } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import { readAtMost } from "../../streams.ts";
import type { Runtime } from "../process/runtime.ts";

/** The maximum size of git's output: enough for the file list of a large repository. A server might send names without end. */
const maxOutputBytes = 64 * 1024 * 1024;
const exitMilliseconds = 1000;
/** The unit of `ulimit -f`. */
const blockBytes = 512;

/** Returns the machine's git. It is killed when this process dies, and can write no file larger than `maxFileBytes`. */
export function createGit({
  clock,
  environment,
  platform,
}: Pick<Runtime, "clock" | "environment" | "platform">): GitProgram {
  const { PATH } = environment;
  const find = (program: string) => Bun.which(program, PATH === undefined ? {} : { PATH });
  return {
    async run(args, { environment: own, maxFileBytes, seconds, signal }) {
      const git = find("git");
      if (git === null) {
        throw usageError(
          "git is not installed, but fetching a repository needs it",
          `Install it${debianAdvice("git")}, or use the URL of an archive of the repository.`,
        );
      }
      // Loaded only if git is run.
      const { beforeDeadline, endHelper, startHelper } = await import("../../programs/helper.ts");
      // Windows has no limits, and the shell of Git Bash, which may be in the PATH, changes arguments that look like paths.
      const limits = platform === "win32" ? [] : limitPrefix(find, maxFileBytes);
      const helper = startHelper([...limits, git, ...args], {
        environment: { HOME: gitHome(environment, platform), ...inheritedVariables(environment), ...own },
      });
      const end = async () => {
        const read = Promise.all([
          readAtMost(maxOutputBytes, helper.stdout),
          readAtMost(maxOutputBytes, helper.stderr),
        ]);
        await helper.stdin.end();
        const [stdout, stderr] = await read;
        if (!stdout.isWhole || !stderr.isWhole)
          throw new BoughError(`git printed more than ${maxOutputBytes / 1024 ** 2} MiB and was stopped`);
        const status = await helper.exited;
        return { status, stdout: stdout.bytes.toString(), stderr: stderr.bytes.toString() };
      };
      try {
        return await beforeDeadline(helper, ["git", ...args], end(), { clock, seconds, signal });
      } finally {
        endHelper(helper);
        // Waits for the end of git, whose directory is about to be removed, but not for long: it may be stuck in disk I/O.
        helper.ref();
        await Promise.race([helper.exited, clock.sleep(exitMilliseconds)]);
      }
    },
    async makeDirectory() {
      const { openScratch } = await import("../process/scratch.ts");
      const scratch = openScratch("git", environment);
      mkdirSync(scratch.path, { mode: 0o700 });
      return scratch;
    },
  };
}

/** Returns a prefix for a command line that kills the program when bough dies, and limits the size of the files that it writes. */
function limitPrefix(find: (program: string) => string | null, maxFileBytes: number): string[] {
  const setpriv = find("setpriv");
  const shell = find("sh");
  return [
    ...(setpriv === null ? [] : [setpriv, "--pdeathsig", "KILL"]),
    ...(shell === null ? [] : [shell, "-c", limitScript(maxFileBytes), shell]),
  ];
}

/** Returns HOME for git, which reads no settings there. On Windows, ssh finds its known hosts there; elsewhere it asks the system. */
function gitHome(environment: Runtime["environment"], platform: NodeJS.Platform): string {
  return platform === "win32" ? homeDirectory(environment, platform) : "/dev/null";
}

/** Returns the shell script that limits git. With its umask, files get the modes of a checkout by root. */
function limitScript(maxFileBytes: number): string {
  const limit = Number.isFinite(maxFileBytes) ? `ulimit -f ${Math.ceil(maxFileBytes / blockBytes)} && ` : "";
  return `umask 022 && ${limit}exec "$@"`;
}

const inheritedNames =
  /^(PATH|TMPDIR|TE?MP|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|PROGRAM(DATA|FILES)|GIT_SSL_CA(INFO|PATH)|SSL_CERT_(FILE|DIR)|(HTTPS?|NO|ALL)_PROXY)$/i;

/** Returns the variables that git inherits: none of bough's own settings, and none that make git prompt or run programs. */
function inheritedVariables(environment: Runtime["environment"]): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment))
    if (value !== undefined && inheritedNames.test(name)) passed[name] = value;
  const { SSL_CERT_FILE } = passed;
  return SSL_CERT_FILE === undefined ? passed : { GIT_SSL_CAINFO: SSL_CERT_FILE, ...passed };
}

const packages = { bzip2: "bzip2", xz: "xz-utils" } as const;

/** Returns the command that installs a package on Debian; "" on systems other than Linux. */
function debianAdvice(name: string): string {
  return process.platform === "linux" ? ` (apt-get install ${name})` : "";
}

/** Returns a function that decompresses formats which Bun does not support, by programs of this machine. */
export function createDecompress(PATH: string | undefined): Decompress {
  return (compression, content, name) => {
    const program = Bun.which(compression, PATH === undefined ? {} : { PATH });
    if (program !== null) return decompressWith([program, "-dc"], content, name);
    throw usageError(
      `${name} is compressed with ${compression}, but that program is not installed`,
      `Install it${debianAdvice(packages[compression])}, or copy the archive unchanged, with --unpack=false.`,
    );
  };
}

async function* decompressWith(
  command: readonly string[],
  content: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<Uint8Array> {
  // Loaded only for archives in these formats.
  const { endHelper, startHelper } = await import("../../programs/helper.ts");
  const helper = startHelper(command, { environment: {} });
  const fed = writeAll(helper.stdin, content);
  // The promise is awaited below. Until then, this prevents an unhandled rejection.
  fed.catch(() => undefined);
  const said = new Response(helper.stderr).text();
  try {
    for await (const chunk of helper.stdout) yield chunk;
    await fed;
    if ((await helper.exited) !== 0) throw new BoughError(`${name} is damaged: ${(await said).trim()}`);
  } finally {
    endHelper(helper);
  }
}

async function writeAll(input: Bun.FileSink, content: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of content) {
      // Returns a number, or a promise that rejects if the program has exited.
      await input.write(chunk);
      await input.flush();
    }
  } finally {
    await input.end();
  }
}
