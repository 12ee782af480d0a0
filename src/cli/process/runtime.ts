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

/** Everything that a command gets from outside. Made once, in `start.ts`. */
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
  /** Handlers of Ctrl-C. The latest runs instead of aborting the signal. */
  interrupts: Set<Interrupt>;
  /** What SIGTERM does in place of ending the work at once, such as waiting for others. A second one ends it. */
  terminations: Set<Interrupt>;
  /** Operations that a service runs for this process, in words. They are printed if the process exits without waiting. */
  running: Set<string>;
  views: Set<View>;
  fetch: Fetch;
  /** The scopes of GitHub's cache that this command has opened. */
  github: GithubCaches;
  /** The blobs that this command has sent to registries, or found there, for a command that pushes many images. */
  pushes?: SingleFlight<LayerBlob>;
  /** True in the place of docker's builder (`cli/plugin`), whose standard output has only what was asked for. */
  isPlugin?: boolean;
  /** What messages call options and commands. `undefined`: as the command line does. */
  wordsOf?: WordsOf;
  /** True for a variable that a secret may have. `undefined`: all, since the caller has set them. */
  isSecretVariable?: (name: string) => boolean;
  /** True for what a coding agent calls (`cli/mcp`). */
  isCalledByAgent?: boolean;
  /** Build arguments of builds that are given no others of their names. */
  defaultBuildArgs?: Readonly<Record<string, string>>;
  /**
   * Runs this command line again in a background process, which may outlive this one. It has its own session, so that neither
   * Ctrl-C nor the end of the terminal reaches it. Standard input is passed on if it is piped. `rewrite` turns this command
   * line's words into the new one's. Of other descriptors, those that the words name.
   */
  runInBackground(
    environment: Readonly<Record<string, string>>,
    rewrite: (words: readonly string[]) => readonly string[],
  ): BackgroundProcess;
  /**
   * Does work without side effects that may block this thread for long. Signals have their default effect meanwhile, which ends the
   * process at once: no handler could run.
   */
  withDefaultSignals<Result>(work: () => Result | Promise<Result>): Promise<Result>;
  /** Why the engine can't work in this process, in which an ordinary user could not become root of a namespace. */
  engineProblem?: BoughError | undefined;
  /** Returns what replaces this process. To be called before anything is opened or read: the other process gets it as it is. */
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
  /** Standard input, to its end. */
  stream(): AsyncIterable<Uint8Array>;
  /** Puts a terminal into raw mode: no echo, no line editing, every key as it is pressed. */
  setRawMode(isRaw: boolean): void;
}

export interface Output {
  write(data: string | Uint8Array): void;
  /**
   * Writes text that is the only output, such as help, through a pager if the terminal is too small for it. That takes a fraction
   * of the time. `columns`: the terminal's width; infinite if there is no terminal.
   */
  writeAlone(render: (columns: number) => string): void;
  /** Resolves when everything written has been taken, so that a fast writer does not fill memory. */
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

/** Returns the terminal to show progress on; `undefined` if nobody watches it. */
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
