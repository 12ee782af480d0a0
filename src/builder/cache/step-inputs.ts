import { edenGC } from "bun:jsc";
import { isSecretName, type Secrets, secretsAmong } from "../../dockerfile/secrets.ts";
import { octalMode } from "../../image/file-mode.ts";
import { createPace } from "../../pace.ts";
import { sha256Of } from "../../sha256.ts";
import type { Staged, StagedEntry } from "../state/staged.ts";
import { directiveOf, hashedState } from "./chain-hash.ts";
import type { MountedImage, StepKey } from "./step-key.ts";

/** The parts of a step's key as they are stored, to be compared with those of a later build and shown. */
export interface StepInputs {
  /** The parent layer's chain hash; the UUID of a base image. */
  parent: string;
  /** The instruction on one line, as written. */
  title: string;
  /** A salted hash of the command, with variables replaced. None for a step without one. */
  command?: string;
  /** Salted hashes of options, by name. Earlier versions stored none. */
  options?: Readonly<Record<string, string>>;
  args: RecordedVariables;
  env: RecordedVariables;
  user: string | null;
  workdir: string;
  /** The stage or image of a `COPY --from`, and its chain hash. Earlier versions stored none. */
  source?: NonNullable<StepKey["source"]>;
  /** What a RUN mounts of stages and images. Earlier versions stored none. */
  mounted?: readonly MountedImage[];
  /** Type, mode, owner and the beginning of the hash, by the path in the image or of the mount. */
  files: Readonly<Record<string, string>>;
}

/** Values by name; `null`: declared without a value. */
export type RecordedVariables = Readonly<Record<string, RecordedValue | null>>;

/** The text itself. For a secret, a salted hash, which is enough to detect a change. */
export type RecordedValue = { text: string } | { withheld: string };

/** A step's key and the title of its instruction. */
interface StepWithKey {
  title: string;
  key: StepKey;
}

/** `salt`: makes equal secrets of different contexts look different. */
export function inputsOf({ title, key }: StepWithKey, salt: string): StepInputs {
  const secrets = secretsIn(key);
  return {
    ...inputsWithoutFiles({ title, key }, secrets, salt),
    files: describeFiles(filesIn(key), secrets),
  };
}

/** Returns the secrets among a step's variables, which are in no text that is stored. */
function secretsIn(key: StepKey): Secrets {
  const { args, env } = hashedState(key);
  return secretsAmong([...args, ...env]);
}

function inputsWithoutFiles(
  { title, key }: StepWithKey,
  secrets: Secrets,
  salt: string,
): Omit<StepInputs, "files"> {
  const { args, env, user, workdir } = hashedState(key);
  const variables = (values: Iterable<readonly [string, string | undefined]>): RecordedVariables =>
    Object.fromEntries(
      [...values].map(([name, value]) => {
        if (value === undefined) return [name, null];
        const isSecret = isSecretName(name) || secrets.mask(value) !== value;
        return [name, isSecret ? { withheld: shortHash(salt + value) } : { text: value }];
      }),
    );
  const { parent, command, source } = key;
  const images = key.mounts?.images ?? [];
  const options = optionsIn(key).map(([name, text]) => [name, shortHash(salt + text)]);
  return {
    parent: parent.isBase ? parent.image : parent.hash,
    title,
    ...(command && { command: shortHash(salt + JSON.stringify(directiveOf(key))) }),
    options: Object.fromEntries(options),
    args: variables(args),
    env: variables(env),
    user: user && secrets.mask(user),
    workdir: secrets.mask(workdir),
    ...(source && { source: { from: source.from, hash: source.hash } }),
    ...(images.length > 0 && { mounted: masked(images, secrets) }),
  };
}

/** Returns the inputs of a layer besides text, variables and files, by the names that an explanation shows. */
function optionsIn({ options = [], mounts, copy = {} }: StepKey): [name: string, text: string][] {
  return [
    ...options.map(({ name, text }): [string, string] => [name, text]),
    ...(mounts === undefined ? [] : [["--mount", mounts.key] as [string, string]]),
    ...Object.entries(copy).map(([name, value]): [string, string] => [
      copyNames[name] ?? `--${name}`,
      JSON.stringify(value),
    ]),
  ];
}

const copyNames: Readonly<Record<string, string>> = {
  sources: "the list of sources",
  destination: "the destination",
};

function masked(images: readonly MountedImage[], secrets: Secrets): MountedImage[] {
  return images.map((image) => ({ ...image, path: secrets.mask(image.path) }));
}

/** A row is garbage right away; without collections, rows would pile up. */
const rowsBetween = 10_000;

/**
 * Returns the same inputs as JSON, in UTF-8. Writes one row at a time: for a large context, an object of all files would take
 * noticeable time, and so would one loop that never yields.
 */
export async function inputsText(step: StepWithKey, salt: string, signal?: AbortSignal): Promise<Uint8Array> {
  const secrets = secretsIn(step.key);
  const inputs = inputsWithoutFiles(step, secrets, salt);
  const pace = createPace(signal);
  const text = new Bun.ArrayBufferSink();
  text.start({ asUint8Array: true });
  text.write(`${JSON.stringify(inputs).slice(0, -1)},"files":{`);
  let count = 0;
  for (const staged of filesIn(step.key)) {
    for (const [path, entry] of staged) {
      if (count > 0) text.write(",");
      text.write(`${JSON.stringify(secrets.mask(path))}:${JSON.stringify(describe(entry, secrets))}`);
      count++;
      if (count % rowsBetween === 0) edenGC();
      const pause = pace.step();
      if (pause !== undefined) await pause;
    }
  }
  text.write("}}");
  return text.end() as Uint8Array;
}

function filesIn({ files, mounts }: StepKey): Staged[] {
  return [files, ...(mounts === undefined ? [] : [mounts.files])];
}

/** Fills one object for all: for a large context, a copy takes noticeable time. */
function describeFiles(all: readonly Staged[], secrets: Secrets): Record<string, string> {
  const described: Record<string, string> = {};
  for (const staged of all)
    for (const [path, entry] of staged) described[secrets.mask(path)] = describe(entry, secrets);
  return described;
}

/** Only a link's description can contain a secret. */
function describe(entry: StagedEntry, secrets: Secrets): string {
  const { attributes = {}, replaces = false } = entry;
  const described = entry.type === "symlink" ? secrets.mask(describeFile(entry)) : describeFile(entry);
  const hasAttributes = Object.keys(attributes).length > 0;
  return [
    described,
    ...(hasAttributes ? [`attributes ${shortHash(JSON.stringify(attributes))}`] : []),
    ...(replaces ? ["in place of what is there"] : []),
  ].join(" ");
}

/** `file 0644 0:0 3f2a9c0d1e4b` */
function describeFile(entry: StagedEntry): string {
  const owner = entry.names ?? `${entry.uid}:${entry.gid}`;
  switch (entry.type) {
    case "file":
      return `file ${octalMode(entry.mode)} ${owner} ${entry.sha256.slice(0, shownDigits)}`;
    case "directory":
      return `directory ${octalMode(entry.mode)} ${owner} ${entry.isExplicit ? "as it is here" : ""}`.trimEnd();
    case "symlink":
      return `link ${owner} to ${entry.target}`;
    case "special":
      return [
        `${entry.kind} ${octalMode(entry.mode)} ${owner}`,
        ...(entry.kind === "pipe" ? [] : [`${entry.major}:${entry.minor}`]),
      ].join(" ");
  }
}

/** The number of hexadecimal digits shown of a hash: enough to tell files apart. */
const shownDigits = 12;

function shortHash(text: string): string {
  return sha256Of(text).slice(0, shownDigits);
}
