/** The fields of one `--output`, as docker buildx reads them. */

import { BoughError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";

import { splitCsv } from "../command-line/option-values.ts";

export interface OutputFields {
  /** The option's value. */
  text: string;
  /** Takes a field out. An empty one is as if it were not given. */
  take(name: string): string | undefined;
  flag(name: string): boolean | undefined;
  isTrue(name: string, otherwise?: boolean): boolean;
  /** Takes `annotation.KEY=VALUE` out, and those with a type and a platform, as `--annotation` has them. */
  annotations(): string[];
  /** Returns sentences on what makes no difference. Throws for unknown fields, unless they are ignored, as docker does. */
  ignored(options: { ignoresUnknown: boolean }): string[];
}

/** Fields of docker buildx that make no difference, and why. */
const ignoredFields: Readonly<Record<string, string>> = {
  "attestation-prefix": "attestations are in the image's index",
  "compression-level": "the level is fixed, so that the same image is always the same bytes",
  "dangling-name-prefix": "an image without a tag has an id",
  store: "the image stays with the service in any case",
  unpack: "images are always unpacked",
};

export function readFields(text: string): OutputFields {
  const fields = parseFields(text);
  const take = (name: string) => {
    const value = fields.get(name);
    fields.delete(name);
    return value === "" ? undefined : value;
  };
  const flag = (name: string) => {
    const value = take(name);
    return value === undefined ? undefined : parseFlag(value, name, text);
  };
  return {
    text,
    take,
    flag,
    isTrue: (name, otherwise = false) => flag(name) ?? otherwise,
    annotations: () =>
      [...fields].flatMap(([name, value]) => {
        const [, type, key] = /^annotation(?:-([^.]+))?\.(.+)$/.exec(name) ?? [];
        if (key === undefined) return [];
        fields.delete(name);
        return [`${type ?? "manifest"}:${key}=${value}`];
      }),
    ignored({ ignoresUnknown }) {
      const sentences = Object.entries(ignoredFields).flatMap(([field, why]) =>
        take(field) === undefined ? [] : [`--output: ${field} is ignored: ${why}`],
      );
      const unknown = [...fields.keys()];
      if (unknown.length > 0 && !ignoresUnknown) throw unusable(text, `unknown field ${unknown[0]}`);
      return [...sentences, ...unknown.map((field) => `--output: ${field} is ignored: it is not known here`)];
    },
  };
}

/** Parses `key=value,...`. As in docker, a word without `=` is a directory, and `-` is an archive on standard output. */
function parseFields(text: string): Map<string, string> {
  if (!/[=,]/.test(text)) {
    if (text === "") throw unusable(text, "it is empty");
    return new Map(
      text === "-"
        ? [
            ["type", "tar"],
            ["dest", "-"],
          ]
        : [
            ["type", "local"],
            ["dest", text],
          ],
    );
  }
  return new Map(
    splitCsv(text).map((field): [string, string] => {
      const [, key, value] = /^([^=]+)=(.*)$/s.exec(field) ?? [];
      if (key === undefined || value === undefined)
        throw unusable(text, `${JSON.stringify(field)} is not KEY=VALUE`);
      return [key.toLowerCase(), value];
    }),
  );
}

function parseFlag(value: string, name: string, text: string): boolean {
  const flag = parseGoBoolean(value);
  if (flag !== undefined) return flag;
  throw unusable(text, `${name} must be true or false, not ${JSON.stringify(value)}`);
}

export function unusable(text: string, problem: string): BoughError {
  return new BoughError(`--output ${JSON.stringify(text)}: ${problem}`, {
    kind: "usage",
    hint: "As for docker buildx build: type=oci|docker|tar|local,dest=PATH, or type=image|registry.",
  });
}
