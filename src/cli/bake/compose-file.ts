/** Reads compose files as far as they say how images are built: https://docs.docker.com/reference/compose-file/. */
import { posix } from "node:path";
import { nearest } from "../../suggest.ts";
import { joined, mergeService, normalizeService, rebase, type Service } from "./compose-merge.ts";
import { type ComposeDocument, parseComposeYaml, withoutReplaced } from "./compose-yaml.ts";
import { type BakeText, below, type FileLocation, locationError } from "./file-location.ts";
import { InterpolationError, type InterpolationVariables, interpolate, parseDotEnv } from "./interpolate.ts";
import { isMap, readText, requireArray, requireMap } from "./target.ts";

/** The services and secrets of compose files, merged. */
export interface Project {
  services: ReadonlyMap<string, Service>;
  secrets: Readonly<Record<string, unknown>>;
  /** The variables that `args` without a value take. */
  environment: (name: string) => string | undefined;
}

export interface ComposeInput {
  /** Reads a file that `at` names; `undefined` if there is none. Paths are relative to the working directory. */
  readFile(path: string, at: FileLocation | undefined): string | undefined;
  environment: (name: string) => string | undefined;
  warn(message: string): void;
}

const topKeys = [
  "name",
  "version",
  "services",
  "networks",
  "volumes",
  "secrets",
  "configs",
  "include",
  "models",
];
/** The keys of a service that say how its image is built. The others say how a container is run. */
const buildKeys = ["image", "build", "environment", "env_file", "extends"];
const runKeys = [
  "annotations attach blkio_config cap_add cap_drop cgroup cgroup_parent command configs container_name cpu_count cpu_percent",
  "cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset credential_spec depends_on deploy develop",
  "device_cgroup_rules devices dns dns_opt dns_search domainname entrypoint expose external_links extra_hosts gpus group_add",
  "healthcheck hostname init ipc isolation label_file labels links logging mac_address mem_limit mem_reservation mem_swappiness",
  "memswap_limit models network_mode networks oom_kill_disable oom_score_adj pid pids_limit platform ports post_start pre_stop",
  "privileged profiles provider pull_policy pull_refresh_after read_only restart runtime scale secrets security_opt shm_size",
  "stdin_open stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts volumes",
  "volumes_from working_dir",
].flatMap((line) => line.split(" "));

/** Reads and merges compose files, with what they include and extend. */
export function readProject(files: readonly BakeText[], input: ComposeInput): Project {
  const environment = withDotEnv({ path: ".env", required: false }, undefined, input, input.environment);
  const documents = files.flatMap((file) => parse(file));
  const given = documents.map(({ root }) => root.name).findLast((name) => typeof name === "string");
  const own = environment("COMPOSE_PROJECT_NAME") || undefined;
  const plain = variablesOf(environment, input);
  const projectName = own ?? (given === undefined ? "bake" : interpolate(String(given), plain));
  const named = (name: string) => (name === "COMPOSE_PROJECT_NAME" ? projectName : environment(name));
  const project = mergeDocuments(documents, "", named, input, []);
  if (project.services.size === 0 && documents.every(({ root }) => root.services === undefined))
    throw locationError(
      { file: files.map(({ file }) => file).join(", "), path: [] },
      "the compose file has no services",
    );
  return project;
}

interface Document extends Pick<ComposeDocument, "replaced"> {
  root: Record<string, unknown>;
  location: FileLocation;
}

/** Parses a file, of which each YAML document counts as a file. */
function parse({ file, text }: BakeText): Document[] {
  const location: FileLocation = { file, path: [], text };
  return parseComposeYaml(text, location).flatMap(({ root, replaced }) =>
    root === null || root === undefined ? [] : [{ root: requireMap(root, location), replaced, location }],
  );
}

/**
 * Merges documents in their order. `base`: the directory that their paths are relative to, itself relative to the working directory.
 * `trail`: the files that include these.
 */
function mergeDocuments(
  documents: readonly Document[],
  base: string,
  environment: Project["environment"],
  input: ComposeInput,
  trail: readonly string[],
): Project {
  let services = new Map<string, Service>();
  let secrets: Record<string, unknown> = {};
  for (const { root, replaced, location } of documents) {
    warnOfUnknown(root, location, input);
    const earlier = withoutReplaced({ services: bodiesOf(services), secrets }, replaced);
    services = withBodies(services, earlier.services);
    secrets = earlier.secrets ?? {};
    const variables = variablesOf(environment, input);
    for (const included of includesOf(root, base, environment, location, input, trail)) {
      for (const [name, service] of included.services) {
        if (services.has(name) && !Bun.deepEquals(services.get(name)?.body, service.body))
          throw locationError(location, `include: the service ${name} is defined here, too`);
        services.set(name, service);
      }
      secrets = { ...secrets, ...included.secrets };
    }
    const own = ownServices(root, location, variables);
    for (const [name, service] of own) {
      const whole = extend(name, service, { own, earlier: services, base, environment, input, replaced });
      const before = services.get(name);
      const rebased = rebase(whole, base, before?.body.build === undefined);
      services.set(
        name,
        before === undefined ? rebased : { ...rebased, body: mergeService(before.body, rebased.body) },
      );
    }
    secrets = { ...secrets, ...ownSecrets(root, base, location, variables) };
  }
  return { services, secrets, environment };
}

function ownSecrets(
  root: Document["root"],
  base: string,
  location: FileLocation,
  variables: ReturnType<typeof variablesOf>,
): Record<string, unknown> {
  const at = below(location, "secrets");
  const given = Object.entries(requireMap(root.secrets ?? {}, at));
  return Object.fromEntries(
    given.map(([name, secret]) => {
      const body = replaceVariables(secret, variables, below(at, name));
      const file = isMap(body) ? body.file : undefined;
      return [name, typeof file === "string" ? { ...(body as object), file: joined(base, file) } : body];
    }),
  );
}

function bodiesOf(services: ReadonlyMap<string, Service>): Record<string, Service["body"]> {
  return Object.fromEntries([...services].map(([name, { body }]) => [name, body]));
}

/** Returns the services that have a body, with it. */
function withBodies(
  services: ReadonlyMap<string, Service>,
  bodies: Readonly<Record<string, Service["body"]>> = {},
): Map<string, Service> {
  return new Map(
    [...services].flatMap(([name, service]) => {
      const body = bodies[name];
      return body === undefined ? [] : [[name, { ...service, body }]];
    }),
  );
}

function ownServices(
  root: Record<string, unknown>,
  location: FileLocation,
  variables: InterpolationVariables,
): Map<string, Service> {
  const at = below(location, "services");
  const services = new Map<string, Service>();
  for (const [name, given] of Object.entries(requireMap(root.services ?? {}, at))) {
    const where = below(at, name);
    const body = requireMap(given ?? {}, where);
    const kept = Object.fromEntries(Object.entries(body).filter(([key]) => buildKeys.includes(key)));
    services.set(name, {
      location: where,
      body: normalizeService(requireMap(replaceVariables(kept, variables, where), where), where),
    });
  }
  return services;
}

interface ExtendsContext {
  own: ReadonlyMap<string, Service>;
  earlier: ReadonlyMap<string, Service>;
  base: string;
  environment: Project["environment"];
  input: ComposeInput;
  replaced: Document["replaced"];
}

/** The maximum length of a chain of `extends`, well below what exhausts the stack. */
const maxExtendsDepth = 100;

/** Returns a service merged over the one that it extends. */
function extend(
  name: string,
  service: Service,
  given: ExtendsContext,
  trail: readonly string[] = [],
): Service {
  const { extends: extended, ...body } = service.body;
  if (extended === undefined || extended === null) return service;
  const at = below(service.location, "extends");
  const { file, service: wanted } = isMap(extended) ? extended : { file: undefined, service: extended };
  const parentName = readText(wanted, below(at, "service"));
  const key = `${file === undefined ? service.location.file : String(file)}: ${parentName}`;
  if (trail.includes(key))
    throw locationError(at, `services extend each other in a circle: ${[...trail, key].join(", ")}`);
  if (trail.length > maxExtendsDepth)
    throw locationError(at, `more than ${maxExtendsDepth} services extend one another`);
  let parent: Service | undefined;
  if (file === undefined) {
    parent = parentName === name ? undefined : given.own.get(parentName);
    if (parent !== undefined) parent = extend(parentName, parent, given, [...trail, key]);
    parent ??= given.earlier.get(parentName);
  } else {
    const path = joined(given.base, readText(file, below(at, "file")));
    const text = given.input.readFile(path, at);
    if (text === undefined) throw locationError(at, `there is no file ${path}`);
    const base = posix.dirname(path);
    for (const { root, replaced, location } of parse({ file: path, text })) {
      const own = ownServices(root, location, variablesOf(given.environment, given.input));
      const found = own.get(parentName);
      if (found === undefined) continue;
      const within = { ...given, own, earlier: new Map<string, Service>(), base, replaced };
      const whole = extend(parentName, found, within, [...trail, key]);
      // Its paths are relative to its file, but this service's are not.
      parent = rebase(whole, relativeBase(base, given.base));
    }
  }
  if (parent === undefined) throw locationError(at, `there is no service ${parentName}`);
  const kept = withoutReplaced({ services: { [name]: parent.body } }, given.replaced).services?.[name] ?? {};
  return { location: service.location, body: mergeService(kept, body) };
}

function relativeBase(path: string, from: string): string {
  return posix.isAbsolute(path) ? path : posix.relative(from || ".", path || ".");
}

function includesOf(
  root: Record<string, unknown>,
  base: string,
  environment: Project["environment"],
  location: FileLocation,
  input: ComposeInput,
  trail: readonly string[],
): Project[] {
  if (root.include === undefined || root.include === null) return [];
  const at = below(location, "include");
  const variables = variablesOf(environment, input);
  return requireArray(replaceVariables(root.include, variables, at), at).map((given) => {
    const entry = isMap(given) ? given : { path: given };
    const paths = readTexts(entry.path, at).map((path) => joined(base, path));
    const [first = ""] = paths;
    if (paths.some((path) => trail.includes(path))) throw locationError(at, `${first} includes itself`);
    const directory =
      typeof entry.project_directory === "string"
        ? joined(base, entry.project_directory)
        : posix.dirname(first);
    const documents = paths.flatMap((path) => {
      const text = input.readFile(path, at);
      if (text === undefined) throw locationError(at, `there is no file ${path}`);
      return parse({ file: path, text });
    });
    const named = entry.env_file === undefined ? undefined : readTexts(entry.env_file, at);
    const files = named?.map((path) => ({ path: joined(base, path), required: true }));
    let within = environment;
    for (const file of files ?? [{ path: posix.join(directory, ".env"), required: false }])
      within = withDotEnv(file, at, input, within);
    return mergeDocuments(documents, directory === "." ? "" : directory, within, input, [...trail, ...paths]);
  });
}

export function readTexts(value: unknown, location: FileLocation): string[] {
  if (value === null || value === undefined) return [];
  return (Array.isArray(value) ? value : [value]).map((each) => readText(each, location));
}

/** Returns the environment with the variables of a file below it. `at`: where the file is named, if it is. */
export function withDotEnv(
  { path, required }: { path: string; required: boolean },
  at: FileLocation | undefined,
  { readFile }: Pick<ComposeInput, "readFile">,
  environment: Project["environment"],
): Project["environment"] {
  const text = readFile(path, at);
  if (text === undefined && at !== undefined && required) throw locationError(at, `there is no file ${path}`);
  if (text === undefined) return environment;
  try {
    const values = parseDotEnv(text, environment);
    return (name) => environment(name) ?? values.get(name);
  } catch (error) {
    if (!(error instanceof InterpolationError)) throw error;
    throw locationError({ file: path, path: [] }, error.message, "Each line is NAME=VALUE.", error);
  }
}

function variablesOf(get: Project["environment"], { warn }: ComposeInput): InterpolationVariables {
  return { get, onUnset: (name) => warn(`the variable ${name} is not set: it is replaced by nothing`) };
}

/** Replaces variables in all texts of a value, but not in keys. */
function replaceVariables(
  value: unknown,
  variables: InterpolationVariables,
  location: FileLocation,
): unknown {
  if (Array.isArray(value))
    return value.map((each, index) => replaceVariables(each, variables, below(location, String(index))));
  if (isMap(value))
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [
        key,
        replaceVariables(each, variables, below(location, key)),
      ]),
    );
  if (typeof value !== "string") return value;
  try {
    return interpolate(value, variables);
  } catch (error) {
    if (!(error instanceof InterpolationError)) throw error;
    throw locationError(location, error.message, "A dollar sign of the value itself is written $$.", error);
  }
}

function warnOfUnknown(root: Record<string, unknown>, location: FileLocation, { warn }: ComposeInput): void {
  const warnOf = (key: string, known: readonly string[], at: FileLocation) => {
    if (known.includes(key) || key.startsWith("x-")) return;
    const meant = nearest(key, known);
    const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
    warn(`${locationError(below(at, key), "unknown field: it is ignored.").message}${hint}`);
  };
  for (const key of Object.keys(root)) warnOf(key, topKeys, location);
  const services = isMap(root.services) ? root.services : {};
  for (const [name, body] of Object.entries(services))
    if (isMap(body))
      for (const key of Object.keys(body))
        warnOf(key, [...buildKeys, ...runKeys], below(location, "services", name));
}
