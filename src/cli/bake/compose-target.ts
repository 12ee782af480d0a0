import { nearest } from "../../suggest.ts";
import { type ComposeInput, type Project, readTexts, withDotEnv } from "./compose-file.ts";
import type { Service } from "./compose-merge.ts";
import { below, type FileLocation, fileAndLine, locationError } from "./file-location.ts";
import {
  type BakeDefinition,
  isMap,
  normalizeFields,
  readField,
  readText,
  requireArray,
  requireMap,
  type Target,
  type TargetFields,
} from "./target.ts";
import { attestationText, isTargetName, targetName } from "./target-names.ts";

/** Makes targets of the services that have a `build`, all in the group `default`, as docker buildx bake does. */
export function composeTargets(project: Project, input: ComposeInput): BakeDefinition {
  const targets = [...project.services].flatMap(([name, service]): Target[] => {
    if (service.body.build === undefined) return [];
    return [targetOf(name, service, project, input)];
  });
  const names = targets.map(({ name }) => name);
  return { targets, groups: [{ name: "default", targets: names }], variables: [] };
}

/** Fields that have the same values as in a bake file, with their names there. */
const sameFields: Readonly<Record<string, keyof TargetFields>> = {
  dockerfile: "dockerfile",
  dockerfile_inline: "dockerfile-inline",
  target: "target",
  network: "network",
  no_cache: "no-cache",
  pull: "pull",
  tags: "tags",
  platforms: "platforms",
  cache_from: "cache-from",
  cache_to: "cache-to",
  no_cache_filter: "no-cache-filter",
  entitlements: "entitlements",
};
/** Fields that docker buildx bake ignores, too, with the reason why bough does. */
const ignored: Readonly<Record<string, string>> = {
  isolation: "it is an option of Windows",
  privileged: "each RUN has the rights that docker gives to one",
};
const convertedFields = [
  ...[
    "context",
    "args",
    "labels",
    "additional_contexts",
    "extra_hosts",
    "secrets",
    "ssh",
    "shm_size",
    "ulimits",
  ],
  ...["provenance", "sbom"],
];

function targetOf(
  service: string,
  { location, body }: Service,
  project: Project,
  input: ComposeInput,
): Target {
  const at = below(location, "build");
  const build = requireMap(body.build, at);
  const name = targetName(service);
  if (!isTargetName(name))
    throw locationError(
      location,
      `invalid name ${JSON.stringify(name)}: letters, digits, _ and - are allowed`,
    );
  let fields: TargetFields = {
    context: build.context === undefined ? "." : readText(build.context, below(at, "context")),
  };
  for (const [key, value] of Object.entries(build)) {
    const where = below(at, key);
    const bakeName = Object.hasOwn(sameFields, key) ? sameFields[key] : undefined;
    if (bakeName !== undefined) fields = { ...fields, ...readField(bakeName, asList(key, value), where) };
    else if (Object.hasOwn(ignored, key))
      input.warn(`${locationError(where, `it is ignored: ${ignored[key]}`).message}`);
    else if (!convertedFields.includes(key) && !key.startsWith("x-")) {
      const meant = nearest(key, [...Object.keys(sameFields), ...convertedFields]);
      throw locationError(where, "unknown field of build", meant && `Did you mean ${meant}?`);
    }
  }
  const attest = (["sbom", "provenance"] as const).flatMap((type) => {
    if (build[type] === undefined || build[type] === null) return [];
    const text = readText(build[type], below(at, type));
    return [attestationText(type, text)];
  });
  fields = {
    ...fields,
    ...readField("args", argsOf(build.args, { location, body }, project, input), below(at, "args")),
    ...readField("labels", withoutNull(build.labels, below(at, "labels")), below(at, "labels")),
    ...readField("contexts", contextsOf(build.additional_contexts, below(at, "additional_contexts")), at),
    ...readField("extra-hosts", hostsOf(build.extra_hosts, below(at, "extra_hosts")), at),
    ...readField("secret", secretsOf(build.secrets, project, below(at, "secrets")), at),
    ...readField("ssh", agentsOf(build.ssh, below(at, "ssh")), at),
    ...readField("ulimits", ulimitsOf(build.ulimits, below(at, "ulimits")), at),
    ...(attest.length > 0 && readField("attest", attest, at)),
    ...(build.shm_size !== undefined && { "shm-size": sizeOf(build.shm_size, below(at, "shm_size")) }),
  };
  fields = withExtension(fields, build["x-bake"], below(at, "x-bake"));
  if ((fields.tags ?? []).length === 0 && body.image !== undefined && body.image !== null)
    fields = { ...fields, tags: [readText(body.image, below(location, "image"))] };
  return { name, origin: fileAndLine(location), inherits: [], fields: normalizeFields(fields) };
}

const listFields = ["tags", "platforms", "cache_from", "cache_to", "no_cache_filter", "entitlements"];

function asList(key: string, value: unknown): unknown {
  return listFields.includes(key) && typeof value === "string" ? [value] : value;
}

/** Returns the arguments. One without a value takes it from the service's environment, or from that of the project. */
function argsOf(
  args: unknown,
  service: Service,
  project: Project,
  input: ComposeInput,
): Record<string, unknown> | null {
  if (!isMap(args)) return null;
  const environment = isMap(service.body.environment) ? service.body.environment : {};
  const fromFiles = (name: string): string | undefined => {
    const files = service.body.env_file ?? [];
    const at = below(service.location, "env_file");
    return (Array.isArray(files) ? files : [files])
      .map((file) => ({
        path: readText(isMap(file) ? file.path : file, at),
        required: !isMap(file) || file.required !== false,
      }))
      .map((file) => withDotEnv(file, at, input, () => undefined)(name))
      .findLast((value) => value !== undefined);
  };
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [
      name,
      value ?? environment[name] ?? fromFiles(name) ?? project.environment(name) ?? null,
    ]),
  );
}

function withoutNull(value: unknown, location: FileLocation): Record<string, unknown> | null {
  if (value === undefined || value === null) return null;
  return Object.fromEntries(
    Object.entries(requireMap(value, location)).map(([key, each]) => [key, each ?? ""]),
  );
}

function contextsOf(value: unknown, location: FileLocation): Record<string, unknown> | null {
  const contexts = withoutNull(value, location);
  if (contexts === null) return null;
  return Object.fromEntries(
    Object.entries(contexts).map(([name, path]) => {
      const [, service] = /^(?:service|target):(.*)$/s.exec(readText(path, below(location, name))) ?? [];
      return [name, service === undefined ? path : `target:${targetName(service)}`];
    }),
  );
}

function hostsOf(value: unknown, location: FileLocation): Record<string, string> | null {
  const hosts = withoutNull(value, location);
  if (hosts === null) return null;
  return Object.fromEntries(
    Object.entries(hosts).map(([name, each]) => [name, readTexts(each, below(location, name)).join(",")]),
  );
}

function secretsOf(
  value: unknown,
  { secrets }: Project,
  location: FileLocation,
): Record<string, string>[] | null {
  if (value === undefined || value === null) return null;
  return requireArray(value, location).map((each) => {
    const id = readText(isMap(each) ? each.source : each, location);
    const secret = secrets[id];
    if (!isMap(secret)) {
      const meant = nearest(id, Object.keys(secrets));
      throw locationError(
        location,
        `there is no secret ${id} under secrets`,
        meant && `Did you mean ${meant}?`,
      );
    }
    if (secret.external === true || secret.external === "true")
      throw locationError(
        location,
        `the secret ${id} is external: only docker swarm has those`,
        "Give it a file or an environment.",
      );
    const { file, environment } = secret;
    return {
      id,
      ...(file !== undefined && { src: readText(file, location) }),
      ...(environment !== undefined && { env: readText(environment, location) }),
    };
  });
}

function agentsOf(value: unknown, location: FileLocation): string[] | null {
  if (value === undefined || value === null) return null;
  return Object.entries(requireMap(value, location))
    .map(([id, path]) => (path === null ? id : `${id}=${readText(path, below(location, id))}`))
    .sort();
}

function ulimitsOf(value: unknown, location: FileLocation): string[] | null {
  if (value === undefined || value === null) return null;
  return Object.entries(requireMap(value, location))
    .map(([name, limit]) => {
      const at = below(location, name);
      const { soft, hard } = isMap(limit) ? limit : { soft: limit, hard: limit };
      return `${name}=${readText(soft ?? hard, at)}:${readText(hard ?? soft, at)}`;
    })
    .sort();
}

/** Writes a size as docker buildx bake does: `128MiB`. */
function sizeOf(value: unknown, location: FileLocation): string {
  const text = readText(value, location);
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  if (number === undefined)
    throw locationError(location, `a size is required, as in 128m, not ${JSON.stringify(text)}`);
  let bytes = Number(number) * 1024 ** Math.max("bkmgt".indexOf(unit.toLowerCase()), 0);
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; bytes >= 1024 && at < units.length - 1; at++) bytes /= 1024;
  return `${Number(bytes.toPrecision(4))}${units[at]}`;
}

/** Fields of `x-bake` with their names in a target. Texts may stand for lists, with spaces between the values. */
const xBakeFields: Readonly<Record<string, keyof TargetFields>> = {
  tags: "tags",
  "cache-from": "cache-from",
  "cache-to": "cache-to",
  secret: "secret",
  ssh: "ssh",
  platforms: "platforms",
  output: "output",
  pull: "pull",
  "no-cache": "no-cache",
  "no-cache-filter": "no-cache-filter",
  contexts: "contexts",
};

function withExtension(fields: TargetFields, given: unknown, location: FileLocation): TargetFields {
  if (given === undefined || given === null) return fields;
  let extended = fields;
  for (const [key, value] of Object.entries(requireMap(given, location))) {
    const name = Object.hasOwn(xBakeFields, key) ? xBakeFields[key] : undefined;
    const at = below(location, key);
    if (name === undefined) {
      const meant = nearest(key, Object.keys(xBakeFields));
      throw locationError(at, "unknown field of x-bake", meant && `Did you mean ${meant}?`);
    }
    const words =
      typeof value === "string" && !["pull", "no-cache"].includes(key) ? value.split(/\s+/) : value;
    const read = readField(name, name === "contexts" ? contextsOf(value, at) : words, at);
    const [before, after] = [extended[name], read[name]];
    const isList = Array.isArray(before) && Array.isArray(after);
    extended =
      name === "contexts"
        ? { ...extended, contexts: { ...read.contexts, ...extended.contexts } }
        : { ...extended, ...read, ...(isList && { [name]: [...before, ...after] }) };
  }
  return extended;
}
