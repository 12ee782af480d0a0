/**
 * An image's configuration: the `config` object of the OCI image specification with its own field names, and with Docker's
 * additions. Other fields are not in the type, and stay in the object unchanged.
 */
export interface ImageConfig {
  /** The argument of a USER instruction. */
  User?: string;
  /** A set of ports, such as `80/tcp`. */
  ExposedPorts?: Readonly<Record<string, unknown>>;
  /** `NAME=value` each; see `variablesIn`. */
  Env?: readonly string[];
  Entrypoint?: readonly string[];
  Cmd?: readonly string[];
  /** A set of paths. */
  Volumes?: Readonly<Record<string, unknown>>;
  WorkingDir?: string;
  Labels?: Readonly<Record<string, string>>;
  StopSignal?: string;
  /** Docker's addition, like the three fields after it. Its content is not checked. */
  Healthcheck?: Readonly<Record<string, unknown>>;
  /** Instructions, each as written. */
  OnBuild?: readonly string[];
  Shell?: readonly string[];
  ArgsEscaped?: boolean;
}

/** The PATH of an image that sets none, as Docker assumes it. */
export const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Checks a configuration from outside. As in Go, `null` and an empty text mean the same as a missing field. As in Docker, a text
 * in place of a command is its only word.
 *
 * @param onMalformed called for each malformed field, which is then left out unless the function throws
 */
export function parseImageConfig(
  fields: Readonly<Record<string, unknown>>,
  onMalformed: (problem: string) => void = () => undefined,
): ImageConfig {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, given]) => {
      const type = typesByName.get(name);
      if (type !== undefined && (given === null || given === "")) return [];
      const value = type === command && typeof given === "string" ? [given] : given;
      const problem = problemOf(value, type);
      if (problem === undefined) return [[name, value]];
      onMalformed(`${name.slice(0, maxNameLength)} ${problem}`);
      return [];
    }),
  );
}

/**
 * Returns the variables of `Env` by name, in order (an object would not keep the order of a name such as `1`). The last of equal
 * names counts, and an entry without `=` is empty.
 */
export function variablesIn({ Env = [] }: ImageConfig): Map<string, string> {
  return new Map(
    Env.map((entry): [string, string] => {
      const end = entry.indexOf("=");
      return end === -1 ? [entry, ""] : [entry.slice(0, end), entry.slice(end + 1)];
    }),
  );
}

/** Returns the variables that a command of an image begins with: the image's own, and a PATH in any case. */
export function withDefaultPath(variables: Iterable<[string, string]>): Map<string, string> {
  return new Map([["PATH", defaultPath], ...variables]);
}

export function withEnv(config: ImageConfig, variables: Iterable<readonly [string, string]>): ImageConfig {
  return { ...config, Env: Array.from(variables, ([name, value]) => `${name}=${value}`) };
}

interface FieldType {
  expected: string;
  includes(value: unknown): boolean;
}

const isText = (value: unknown) => typeof value === "string";
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const text: FieldType = { expected: "a string", includes: isText };
const texts: FieldType = { expected: "a list of strings", includes: isTexts };
const command: FieldType = { ...texts };
const object: FieldType = { expected: "an object", includes: isObject };
const labels: FieldType = {
  expected: "an object whose values are strings",
  includes: (value) => isObject(value) && Object.values(value).every(isText),
};
const flag: FieldType = { expected: "true or false", includes: (value) => typeof value === "boolean" };

const types: Readonly<Record<keyof ImageConfig, FieldType>> = {
  User: text,
  ExposedPorts: object,
  Env: texts,
  Entrypoint: command,
  Cmd: command,
  Volumes: object,
  WorkingDir: text,
  Labels: labels,
  StopSignal: text,
  Healthcheck: object,
  OnBuild: texts,
  Shell: command,
  ArgsEscaped: flag,
};
const typesByName: ReadonlyMap<string, FieldType> = new Map(Object.entries(types));

function problemOf(value: unknown, type: FieldType | undefined): string | undefined {
  if (type?.includes(value) === false) return `must be ${type.expected}`;
  return isShallow(value) ? undefined : "is nested too deeply";
}

/** Maximum characters of a field's name in a message: names can be arbitrary. */
const maxNameLength = 80;

/** Levels of nested values, more than any tool writes. JSON.parse accepts millions of levels, for which JSON.stringify would overflow the stack. */
const maxDepth = 32;

function isShallow(value: unknown, depth = maxDepth): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isShallow(inner, depth - 1));
}

/**
 * Adds the configuration of an image's base to its `own`, by Docker's rules, if `own` does not include it. `hasAllButEnv`: only
 * the base's variables are missing.
 */
export function inheritConfig(
  base: ImageConfig,
  own: ImageConfig,
  { hasAllButEnv }: { hasAllButEnv: boolean },
): ImageConfig {
  const variables = new Map([...variablesIn(base), ...variablesIn(own)]);
  const complete = hasAllButEnv ? own : inherit(base, own);
  return variables.size === 0 ? complete : withEnv(complete, variables);
}

function inherit(base: ImageConfig, own: ImageConfig): ImageConfig {
  // ONBUILD triggers are for builds from the base only. An ENTRYPOINT resets the base's CMD.
  const { OnBuild: _, Cmd, ...inherited } = base;
  const command = own.Entrypoint === undefined && Cmd !== undefined ? { Cmd } : {};
  return {
    ...inherited,
    ...command,
    ...own,
    ...union("Labels", base, own),
    ...union("ExposedPorts", base, own),
    ...union("Volumes", base, own),
  };
}

function union<Name extends "Labels" | "ExposedPorts" | "Volumes">(
  name: Name,
  base: ImageConfig,
  own: ImageConfig,
): Pick<ImageConfig, Name> | object {
  const both: Readonly<Record<string, unknown>> = { ...base[name], ...own[name] };
  return Object.keys(both).length === 0 ? {} : { [name]: both };
}
