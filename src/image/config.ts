/**
 * What an image is besides its files: the `config` object of the OCI image specification under its own field names, with what
 * Docker adds. Fields that neither knows are not in the type, and stay in the object as they came.
 */
export interface ImageConfig {
  /** What a USER instruction says. */
  User?: string;
  /** A set: `80/tcp`. */
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
  /** Docker's, as the next three. What is in it is not checked. */
  Healthcheck?: Readonly<Record<string, unknown>>;
  /** Instructions, each as written. */
  OnBuild?: readonly string[];
  Shell?: readonly string[];
  ArgsEscaped?: boolean;
}

/**
 * Checks a configuration that somebody else has written. `null` and an empty text mean what a missing field does, as in Go,
 * and one text in place of a command is its only word, as Docker has it.
 *
 * @param onMalformed learns of each field that is not what it should be, which is left out unless that throws
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
 * What `Env` sets, by name, in its order, which an object would not keep of a name such as `1`; the last of equal names counts, and
 * one without `=` is empty.
 */
export function variablesIn({ Env = [] }: ImageConfig): Map<string, string> {
  return new Map(
    Env.map((entry): [string, string] => {
      const end = entry.indexOf("=");
      return end === -1 ? [entry, ""] : [entry.slice(0, end), entry.slice(end + 1)];
    }),
  );
}

export function withVariables(
  config: ImageConfig,
  variables: Iterable<readonly [string, string]>,
): ImageConfig {
  return { ...config, Env: Array.from(variables, ([name, value]) => `${name}=${value}`) };
}

interface Type {
  expected: string;
  includes(value: unknown): boolean;
}

const isText = (value: unknown) => typeof value === "string";
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const text: Type = { expected: "a text", includes: isText };
const texts: Type = { expected: "a list of texts", includes: isTexts };
const command: Type = { ...texts };
const object: Type = { expected: "an object", includes: isObject };
const labels: Type = {
  expected: "an object of texts",
  includes: (value) => isObject(value) && Object.values(value).every(isText),
};
const flag: Type = { expected: "true or false", includes: (value) => typeof value === "boolean" };

const types: Readonly<Record<keyof ImageConfig, Type>> = {
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
const typesByName: ReadonlyMap<string, Type> = new Map(Object.entries(types));

function problemOf(value: unknown, type: Type | undefined): string | undefined {
  if (type?.includes(value) === false) return `must be ${type.expected}`;
  return isShallow(value) ? undefined : "is nested too deeply";
}

/** Most characters of a field's name in a message: some names are of somebody's own making. */
const maxNameLength = 80;

/** Deeper than any tool writes. JSON.parse takes millions of levels, of which JSON.stringify would overflow the stack. */
const maxDepth = 32;

function isShallow(value: unknown, depth = maxDepth): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isShallow(inner, depth - 1));
}
