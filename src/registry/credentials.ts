import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { type Environment, findDockerDirectory, inHome } from "../home-directory.ts";
import { Secret } from "../secret.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../service/http/json.ts";
import { errorCode, reasonOf } from "../system-error.ts";
import type { Repository } from "./repository.ts";

/** An account of a registry. */
export interface RegistryCredentials {
  username: string;
  password: Secret;
}

/** The credentials for a registry. */
export type Login =
  | ({ kind: "password" } & RegistryCredentials)
  /** An identity token, which the token server exchanges: `docker login` with a browser stores one. */
  | { kind: "identity"; token: Secret }
  /** A token for the registry itself. */
  | { kind: "registry"; token: Secret };

/** Runs `docker-credential-NAME get` with a registry's name as its input. Returns its output; `undefined` if it has nothing. */
type RunCredentialHelper = (name: string, input: string) => Promise<string | undefined>;

/** The name under which `docker login` stores Docker Hub's credentials. */
const hubKey = "https://index.docker.io/v1/";

/** Finds the credentials for a repository in the files in which skopeo and docker look for them. */
export async function findLogin(
  { registry, name }: Pick<Repository, "registry" | "name">,
  environment: Environment,
  runHelper: RunCredentialHelper,
): Promise<Login | undefined> {
  for (const path of credentialFiles(environment)) {
    const file = readJson(path);
    const login =
      file === undefined
        ? undefined
        : ((await loginFromHelper(file, registry, runHelper)) ?? loginIn(file, registry, name, path));
    if (login !== undefined) return login;
  }
  return undefined;
}

/** https://github.com/containers/image/blob/main/docs/containers-auth.json.5.md */
function credentialFiles(environment: Environment): string[] {
  const { REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, XDG_CONFIG_HOME } = environment;
  if (REGISTRY_AUTH_FILE) return [REGISTRY_AUTH_FILE];
  const config = XDG_CONFIG_HOME || inHome(environment, ".config");
  const docker = findDockerDirectory(environment);
  const user = process.getuid?.();
  return [
    XDG_RUNTIME_DIR
      ? join(XDG_RUNTIME_DIR, "containers/auth.json")
      : user === undefined
        ? undefined
        : `/run/containers/${user}/auth.json`,
    config && join(config, "containers/auth.json"),
    docker && join(docker, "config.json"),
  ].filter((path): path is string => path !== undefined && path !== "");
}

/** Returns `undefined` if there is no such file. */
function readJson(path: string): JsonRecord | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(errorCode(error) ?? "")) return undefined;
    throw new BoughError(`the credentials in ${path} cannot be read: ${reasonOf(error)}`);
  }
  // The parser's own message may quote the text, which has secrets.
  try {
    return asRecord(text.trim() === "" ? {} : JSON.parse(text));
  } catch {
    throw new BoughError(`the credentials in ${path} cannot be read: it is not JSON`);
  }
}

async function loginFromHelper(
  { credHelpers, credsStore }: JsonRecord,
  registry: string,
  runHelper: RunCredentialHelper,
): Promise<Login | undefined> {
  const helper = asText(asRecord(credHelpers)?.[registry]) ?? asText(credsStore);
  if (helper === undefined || !/^[\w.-]+$/.test(helper)) return undefined;
  const output = await runHelper(helper, registry === "docker.io" ? hubKey : registry);
  const found = output === undefined ? undefined : parseRecord(output);
  const [username, secret] = [asText(found?.Username), asText(found?.Secret)];
  if (username === undefined || secret === undefined) return undefined;
  return username === "<token>"
    ? { kind: "identity", token: Secret.of(secret) }
    : { kind: "password", username, password: Secret.of(secret) };
}

/** Prefers the entry of the longest prefix of the repository, then one of the registry in docker's own spelling. */
function loginIn(file: JsonRecord, registry: string, name: string, path: string): Login | undefined {
  const entries = asRecord(file.auths) ?? {};
  const segments = name.split("/");
  const prefixes = segments.map((_, index) =>
    [registry, ...segments.slice(0, segments.length - index)].join("/"),
  );
  const keys = [...prefixes, registry].filter((key) => Object.hasOwn(entries, key));
  const spelled = Object.keys(entries).filter((key) => registryOf(key) === registry);
  for (const key of [...keys, ...spelled]) {
    const login = readEntry(asRecord(entries[key]) ?? {}, `${path} for ${key}`);
    if (login !== undefined) return login;
  }
  return undefined;
}

/** Returns the registry that a key such as `https://index.docker.io/v1/` means. */
function registryOf(key: string): string {
  const host = key.replace(/^https?:\/\//, "").replace(/\/(v[12]\/?)?$/, "");
  return /^(index\.docker\.io|registry-1\.docker\.io|docker\.io)$/.test(host) ? "docker.io" : host;
}

function readEntry(entry: JsonRecord, place: string): Login | undefined {
  const [identity, token] = [asText(entry.identitytoken), asText(entry.registrytoken)];
  if (identity !== undefined) return { kind: "identity", token: Secret.of(identity) };
  if (token !== undefined) return { kind: "registry", token: Secret.of(token) };
  const auth = asText(entry.auth);
  if (auth === undefined) {
    const [username, password] = [asText(entry.username), asText(entry.password)];
    if (username === undefined || password === undefined) return undefined;
    return { kind: "password", username, password: Secret.of(password) };
  }
  const [, username, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(auth, "base64").toString()) ?? [];
  if (username === undefined || password === undefined)
    throw new BoughError(`the credentials in ${place} are damaged: expected USER:PASSWORD in base64`);
  return { kind: "password", username, password: Secret.of(password.replace(/\0+$/, "")) };
}

/** A helper may ask a keyring, which may ask the user. */
const helperTimeoutSeconds = 60;

/**
 * Returns a function that runs docker's credential helpers, which are in the PATH. A helper that is missing or fails counts as without
 * credentials: the file that names it may come from another machine. https://github.com/docker/docker-credential-helpers
 */
export function credentialHelpers(environment: Environment, clock: Clock): RunCredentialHelper {
  return async (name, input) => {
    const program = Bun.which(`docker-credential-${name}`, { PATH: environment.PATH ?? "" });
    if (program === null) return undefined;
    // Loaded only if there is one.
    const { runHelper } = await import("../programs/helper.ts");
    const { status, stdout } = await runHelper([program, "get"], {
      environment: environmentOf(environment),
      input,
      clock,
      seconds: helperTimeoutSeconds,
    });
    return status === 0 ? stdout : undefined;
  };
}

/** Returns the environment without bough's variables, which may have secrets. Helpers of clouds read variables of their own. */
function environmentOf(environment: Environment): Record<string, string> {
  const passed = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(BOUGH|CONTREE)_/.test(entry[0]),
  );
  return Object.fromEntries(passed);
}
