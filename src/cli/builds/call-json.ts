/** What `--call METHOD,format=json` prints, in the words of docker buildx: https://docs.docker.com/reference/cli/docker/buildx/build/#call */
import { basename } from "node:path";
import type { CheckReport } from "../../check/check.ts";
import { dockerRules, type Finding, isDockerRule, pageOf } from "../../check/rules.ts";
import type { Dockerfile, LineRange } from "../../dockerfile/instruction.ts";
import { withHint } from "../../errors.ts";
import { commentOn, type Outline } from "./outline.ts";

interface Source {
  path: string;
  text: string;
}

/** Only Docker's checks are in it: what reads it knows no others. */
export function checkInBuildx({ warnings, errors }: CheckReport, { path, text }: Source) {
  const found = warnings.flatMap((finding) => {
    const { rule } = finding;
    return isDockerRule(rule) ? [describeWarning(finding, dockerRules[rule])] : [];
  });
  const [error] = errors;
  return {
    warnings: found.length === 0 ? null : found,
    sources: [{ filename: basename(path), data: inBase64(text), language: "Dockerfile" }],
    ...(error && { buildError: describeError(error) }),
  };
}

function describeError(error: Finding) {
  const { rule, range } = error;
  const place = rule === "ParseError" && range ? `dockerfile parse error on line ${range.start}: ` : "";
  return { message: `${place}${withHint(error)}`, location: locationOf(range) };
}

function describeWarning(finding: Finding, description: string) {
  const { rule, message, range } = finding;
  return { ruleName: rule, description, url: pageOf(rule), detail: message, location: locationOf(range) };
}

/** Fields without a value are left out, as in Go. */
export function targetsInBuildx({ stages, lines }: Dockerfile, { text }: Source) {
  return {
    targets: stages.map(({ name, from, index }) => ({
      ...(name !== undefined && { name }),
      ...(index === stages.length - 1 && { default: true }),
      ...textField("description", commentOn(name, from, lines)),
      base: from.image,
      ...textField("platform", from.platform),
      location: locationOf(from.range),
    })),
    sources: [inBase64(text)],
  };
}

export function outlineInBuildx({ name, description, args, secrets, ssh }: Outline, { text }: Source) {
  const mounts = (list: Outline["secrets"]) =>
    list.map(({ name, isRequired, range }) => ({
      name,
      ...(isRequired && { required: true }),
      location: locationOf(range),
    }));
  return {
    ...textField("name", name),
    ...textField("description", description),
    ...(args.length > 0 && {
      args: args.map((arg) => ({
        name: arg.name,
        ...textField("description", arg.description),
        ...textField("value", arg.value),
        location: locationOf(arg.range),
      })),
    }),
    ...(secrets.length > 0 && { secrets: mounts(secrets) }),
    ...(ssh.length > 0 && { ssh: mounts(ssh) }),
    sources: [inBase64(text)],
  };
}

function textField<Name extends string>(name: Name, value: string | undefined) {
  return value === undefined || value === "" ? {} : { [name]: value };
}

/** A range for each line. */
function locationOf(range: LineRange | undefined) {
  if (range === undefined) return {};
  const lines = Array.from({ length: range.end - range.start + 1 }, (_, at) => range.start + at);
  return { ranges: lines.map((line) => ({ start: { line }, end: { line } })) };
}

function inBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}
