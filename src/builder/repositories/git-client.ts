import { secretsAmong } from "../../dockerfile/secrets.ts";
import { BoughError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import type { GitEnd } from "../addresses/git-program.ts";
import type { RepositoryAddress } from "../addresses/repository-address.ts";
import { redactUrl, splitCredentials } from "../addresses/source-url.ts";
import type { RemoteAccess } from "../remote-files/remote-access.ts";
import { secretTexts } from "../state/secrets.ts";
import { gitEnvironment } from "./git-settings.ts";

/** git for one repository. It never prompts, reads no settings of this machine, and runs no code of the repository. */
export interface GitClient {
  /** The address without credentials, as passed to git and kept in `.git`. */
  remote: string;
  /** Rejects with a readable error if git fails. */
  run(args: readonly string[], options?: GitOptions): Promise<string>;
  /** Returns the exit status and output. The caller handles a failure, with `exitError`. */
  attempt(args: readonly string[], options?: GitOptions): Promise<GitEnd>;
  exitError(end: GitEnd): BoughError;
  /** Returns an error that names the repository. */
  refuse(problem: string, hint?: Message): BoughError;
}

interface GitOptions {
  /** Allows all schemes in addition to the address's own, for submodules. */
  takesAnyScheme?: boolean;
}

/** The time limit of one call. A call without progress is ended much earlier. */
const maxSeconds = 3600;
const maxAttempts = 3;

export function createGitClient(address: RepositoryAddress, access: RemoteAccess): GitClient {
  const { scheme } = address;
  const isHttp = scheme === "http" || scheme === "https";
  const { target, authorization: own } = isHttp
    ? splitCredentials(address.remote)
    : { target: undefined, authorization: undefined };
  const authorization = target === undefined ? undefined : (givenAuthorization(target.host, access) ?? own);
  const shown = redactUrl(address.remote, access.buildArgs);
  const { mask } = secretsAmong([...access.buildArgs, ...secretTexts(access.secrets)]);
  const refuse = refuser(address, access);
  const environment = {
    ...gitEnvironment(
      target === undefined || authorization === undefined
        ? []
        : [[`http.${target.origin}/.extraHeader`, `Authorization: ${authorization}`]],
    ),
    ...(scheme === "ssh" ? { SSH_AUTH_SOCK: agentOf(shown, access) } : {}),
  };

  const attempt: GitClient["attempt"] = async (args, { takesAnyScheme = false } = {}) => {
    // A redirect to plain HTTP is followed only from plain HTTP.
    const schemes = takesAnyScheme ? "https:http:ssh:git" : scheme === "http" ? "http:https" : scheme;
    const run = {
      environment: { ...environment, GIT_ALLOW_PROTOCOL: schemes },
      maxFileBytes: access.maxAddBytes,
      seconds: maxSeconds,
      signal: access.signal,
    };
    for (let number = 1; ; number++) {
      const end = await access.git.run(args, run);
      if (end.status === 0 || number === maxAttempts || !temporary.test(end.stderr)) return end;
      access.warn(`${exitError(end).message}; trying again in ${number} s`);
      await access.clock.sleep(number * 1000, access.signal);
    }
  };
  const exitError = ({ stderr, status }: GitEnd) => {
    const { reason, hint } = explain(stderr, access.maxAddBytes);
    return refuse(mask(reason ?? `git exited with ${status}`), hint);
  };
  return {
    remote: target?.href ?? withoutPassword(address.remote),
    async run(args, options) {
      const end = await attempt(args, options);
      if (end.status !== 0) throw exitError(end);
      return end.stdout;
    },
    attempt,
    exitError,
    refuse,
  };
}

/** Removes the login of a `git://` address and the password of an ssh address: git uses neither, and would show them with the host. */
function withoutPassword(remote: string): string {
  return remote.replace(/^git:\/\/[^/]*@/, "git://").replace(/^(ssh:\/\/[^/:]*):[^/]*@/, "$1@");
}

/** Returns a function that makes errors that name the repository. */
export function refuser(
  { remote }: RepositoryAddress,
  { subject, buildArgs }: RemoteAccess,
): GitClient["refuse"] {
  const shown = redactUrl(remote, buildArgs);
  return (problem, hint) => new BoughError(`${subject} ${shown}: ${problem}`, { hint });
}

/** Returns the header from BuildKit's secrets, which hold a header or a token, for one host or for all. */
function givenAuthorization(host: string, { secrets }: RemoteAccess): string | undefined {
  for (const [id, isToken] of [
    [`GIT_AUTH_HEADER.${host}`, false],
    [`GIT_AUTH_TOKEN.${host}`, true],
    ["GIT_AUTH_HEADER", false],
    ["GIT_AUTH_TOKEN", true],
  ] as const) {
    const secret = secrets.values.get(id);
    if (secret === undefined) continue;
    const text = new TextDecoder().decode(secret.reveal()).trim();
    if (/[\0\r\n]/.test(text))
      throw new BoughError(wording`${{ option: "secret" }} id=${id}: the value must be a single line`, {
        kind: "usage",
      });
    return isToken ? `Basic ${Buffer.from(`x-access-token:${text}`).toString("base64")}` : text;
  }
  return undefined;
}

function agentOf(shown: string, { subject, secrets }: RemoteAccess): string {
  const agent = secrets.agents.get("default");
  if (agent !== undefined) return agent;
  throw new BoughError(`${subject} ${shown}: an SSH agent is required, but was not given`, {
    kind: "usage",
    hint: wording`Give one with ${{ option: "ssh" }} default.`,
  });
}

const temporary =
  /returned error: (429|5\d\d)|early EOF|hung up|unexpected disconnect|RPC failed|Connection (reset|timed out)|Could not resolve host|Operation too slow/i;

const loginHint = wording`A private repository requires a login: ${{ option: "secret" }} id=GIT_AUTH_TOKEN,env=NAME, or ${{ option: "ssh" }} default for git@ and ssh://.`;

function explain(stderr: string, maxBytes: number): { reason: string | undefined; hint?: Message } {
  if (
    /could not read (Username|Password)|Authentication failed|returned error: 40[13]|Permission denied \(/i.test(
      stderr,
    )
  )
    return { reason: "authentication required or failed", hint: loginHint };
  if (/Host key verification failed/i.test(stderr))
    return {
      reason: "the server's host key is not known to this machine",
      hint: "Connect once by hand (ssh HOST), and compare the key with the one that the server's owner publishes.",
    };
  if (/signal 25|File size limit/i.test(stderr)) return tooLarge(maxBytes);
  if (/No space left on device|Out of diskspace/i.test(stderr))
    return {
      reason: "no space left on the disk that it is fetched to",
      hint: "Free space in BOUGH_HOME (a build's context), or in TMPDIR (ADD).",
    };
  if (
    /repository .*not found|returned error: 404|does not appear to be a git repository|no matching repositories/i.test(
      stderr,
    )
  )
    return { reason: "git repository not found", hint: wording`Check the address. ${loginHint}` };
  if (
    /transport '.*' not allowed|protocol '.*' is not (supported|allowed)|Protocol ".*" (not supported|disabled)/i.test(
      stderr,
    )
  )
    return {
      reason: "the server redirects to an address that is less secure; refused",
      hint: "Give the final address if you trust it.",
    };
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const errorLine = lines.findLastIndex((text) => /^(fatal|error): /.test(text));
  const at = errorLine < 0 ? lines.length - 1 : errorLine;
  const line = lines[at]?.replace(/^(fatal|error): /, "");
  // The lines after `unable to connect to HOST:` give the reason.
  const reason = line?.endsWith(":") ? `${line} ${lines.slice(at + 1).join("; ")}` : line;
  const hint = "Check the address, and that this machine can reach it.";
  return { reason: reason?.slice(0, 500), hint };
}

export function tooLarge(maxBytes: number): { reason: string; hint: Message } {
  return {
    reason: `it is larger than ${maxBytes} bytes`,
    hint: wording`If the address is right, allow more with ${{ option: "max-add-size" }} SIZE.`,
  };
}
