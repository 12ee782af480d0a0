import { isAbsolute, join, resolve } from "node:path";
import type { Clock } from "../../clock.ts";
import type { BoughError } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import type { WordsOf } from "../../messages/wording.ts";
import type { SingleFlight } from "../../once.ts";
import type { GithubCaches } from "../../registry/github/github-caches.ts";
import type { Fetch } from "../../service/service.ts";
import { isCi } from "../../terminal/color.ts";
import type { Inputs } from "./inputs.ts";
import type { Interrupt } from "./interrupts.ts";

/** The environment of a command: everything that it gets from outside. `start.ts` creates it once. */
export interface Runtime {
  environment: Readonly<Record<string, string | undefined>>;
  workingDirectory: string;
  /** `linux`, `darwin` or `win32`. The embedded engine needs `linux`. */
  platform: NodeJS.Platform;
  /** 0 for root; `undefined` if the system has no user ids. */
  userId: number | undefined;
  stdin: Input;
  /** The files and pipes that options name. */
  inputs: Inputs;
  stdout: Output;
  stderr: Output;
  clock: Clock;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP. */
  signal: AbortSignal;
  /** Handlers of Ctrl-C. The latest one is called instead of aborting the signal. */
  interrupts: Set<Interrupt>;
  /** Handlers of SIGTERM, which may wait for running work instead of ending it at once. A second SIGTERM ends it. */
  terminations: Set<Interrupt>;
  /** Descriptions of operations that a service runs for this process. They are printed if the process exits without waiting. */
  running: Set<string>;
  views: Set<View>;
  fetch: Fetch;
  /** The scopes of GitHub's cache that this command has opened. */
  github: GithubCaches;
  /** The blobs that this command has sent to registries, or found there. Set for commands that push many images. */
  pushes?: SingleFlight<LayerBlob>;
  /** True when bough runs as docker's builder (`cli/plugin`), which writes only the result to standard output. */
  isPlugin?: boolean;
  /** The names of options and commands in messages; `undefined` for those of the command line. */
  wordsOf?: WordsOf;
  /** True for a variable that a secret may be read from; `undefined` if it may be any, since the caller has set them. */
  isSecretVariable?: (name: string) => boolean;
  /** True for calls of a coding agent (`cli/mcp`). */
  isCalledByAgent?: boolean;
  /** Defaults for the build arguments of builds. */
  defaultBuildArgs?: Readonly<Record<string, string>>;
  /**
   * Runs this command line again in a background process, which may outlive this one. It has its own session, so that neither
   * Ctrl-C nor the end of the terminal reaches it. It inherits standard input if that is piped, and the descriptors whose paths occur
   * in the words. `rewrite` turns the words of this command line into those of the new one.
   */
  runInBackground(
    environment: Readonly<Record<string, string>>,
    rewrite: (words: readonly string[]) => readonly string[],
  ): BackgroundProcess;
  /**
   * Does work that has no side effects, and that may block this thread for long. Meanwhile signals end the process at once, which is
   * their default effect, since no handler could run.
   */
  withDefaultSignals<Result>(work: () => Result | Promise<Result>): Promise<Result>;
  /** The error of the engine in a process whose user is not root, and could not become root of a namespace. */
  engineProblem?: BoughError | undefined;
  /** Returns a function that replaces this process. To be called before anything is opened or read, since the new process inherits it. */
  prepareReplacement(): Promise<Replacement>;
}

/** Replaces this process by `command` with this command line appended, and with all descriptors; does not return. */
export type Replacement = (
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
) => never;

/** A view that is drawn on the terminal, or has the terminal to itself. */
export interface View {
  /** Restores the terminal. Called also if the process exits without waiting. */
  close(): void;
  /**
   * Called before the process is stopped, as by Ctrl-Z, because another program gets the terminal. Not called for signals that
   * can't be caught, such as SIGSTOP.
   */
  suspend?(): void;
  /** Called when the process continues. */
  resume?(): void;
}

export interface BackgroundProcess {
  stdout: ReadableStream<Uint8Array>;
  stderr: ReadableStream<Uint8Array>;
  exited: Promise<number>;
}

export interface Input {
  isTerminal: boolean;
  /** True for a pipe, a file or a socket; false for a terminal and `/dev/null`. */
  isPiped: boolean;
  /** Returns standard input as a stream, to its end. */
  stream(): AsyncIterable<Uint8Array>;
  /** Puts a terminal into raw mode: no echo, no line editing, every key as it is pressed. */
  setRawMode(isRaw: boolean): void;
}

export interface Output {
  write(data: string | Uint8Array): void;
  /**
   * Writes text that is the only output, such as help, through a pager if the terminal is too small for it. Takes a fraction of the
   * time of `write`. `columns`: the terminal's width; infinite if there is no terminal.
   */
  writeAlone(render: (columns: number) => string): void;
  /** Resolves when the system has taken everything that was written, so that a fast writer does not fill memory. */
  flush(): Promise<void>;
  isTerminal: boolean;
  /** True if colours are wanted, by `NO_COLOR`, `FORCE_COLOR`, `CI` and the terminal. */
  hasColor: boolean;
  /** The terminal's current width; 80 if it is unknown or there is no terminal. */
  readonly columns: number;
  /** The terminal's current height; 24 if it is unknown or there is no terminal. */
  readonly rows: number;
  /** Calls the listener whenever the size of the terminal changes. Returns a function that removes it. */
  onResize(listener: () => void): () => void;
}

/** Returns the terminal to show progress on; `undefined` if nobody watches the output. */
export function watchedTerminal(
  { stderr, environment }: Pick<Runtime, "stderr" | "environment">,
  { quiet }: { quiet: boolean },
): Output | undefined {
  return stderr.isTerminal && !quiet && !isCi(environment.CI) ? stderr : undefined;
}

/**
 * Returns bough's state directory: `$BOUGH_HOME`, else `$XDG_STATE_HOME/bough`, else `~/.local/state/bough`, on Windows
 * `%LOCALAPPDATA%\\bough`.
 */
export function stateDirectory({ environment, platform }: Pick<Runtime, "environment" | "platform">): string {
  const { BOUGH_HOME, XDG_STATE_HOME, LOCALAPPDATA } = environment;
  if (BOUGH_HOME !== undefined && BOUGH_HOME !== "") return resolve(BOUGH_HOME);
  // The XDG specification: a relative path is invalid and ignored.
  if (XDG_STATE_HOME !== undefined && isAbsolute(XDG_STATE_HOME)) return join(XDG_STATE_HOME, "bough");
  if (platform === "win32" && LOCALAPPDATA) return join(LOCALAPPDATA, "bough");
  return join(homeDirectory(environment), ".local", "state", "bough");
}
