import { redactUrl } from "../../builder/addresses/source-url.ts";
import { contextName } from "../../builder/contexts/named-context.ts";
import { BoughError, messageOf, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { parseReference } from "../../service/images/reference.ts";
import { splitPair } from "../command-line/option-values.ts";
import type { FetchedContext } from "../contexts/fetched-context.ts";

/** A context of a build beside its main one, of which nothing has been looked at yet. `text`: as it was given, for messages. */
export type ContextEntry = { name: string; text: string } & (
  | { kind: "image"; reference: string }
  | { kind: "layout"; image: LayoutPlace }
  /** A directory or an address, which `text` is: an existing directory wins. */
  | { kind: "place" }
  /** It came with a bake file. */
  | { kind: "fetched"; context: FetchedContext }
);

/** An image of an OCI layout. */
export interface LayoutPlace {
  path: string;
  tag: string | undefined;
  digest: string | undefined;
}

/** Parses `NAME=VALUE`. */
export function parseContext(text: string): ContextEntry {
  const [name, value = ""] = splitPair(text);
  return contextOf(name, value, text);
}

/** Returns the context that a name and a value mean. `given`: how they were written, for messages. */
export function contextOf(word: string, value: string, given = `${word}=${value}`): ContextEntry {
  // An address without a name may have an equals sign in its query.
  if (word === "" || value === "" || word.includes("://")) throw withoutName(given);
  const name = checkedName(word);
  const entry = { name, text: value };
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(value) ?? [];
  switch (scheme?.toLowerCase()) {
    case "docker-image":
    case "container-image":
    case "docker":
      return { ...entry, kind: "image", reference: imageIn(rest, name, value) };
    case "oci-layout":
      return { ...entry, kind: "layout", image: layoutPlace(rest) };
    default:
      if (/^target:/.test(value)) throw refusedTarget(name, value);
      return { ...entry, kind: "place" };
  }
}

/** Returns an image as a context. */
export function imageContext(name: string, reference: string): ContextEntry {
  return { name: checkedName(name), text: `docker-image://${reference}`, kind: "image", reference };
}

/** Returns a directory that came with a bake file as a context. `text`: the words for it. */
export function fetchedContext(name: string, text: string, context: FetchedContext): ContextEntry {
  return { name: checkedName(name), text, kind: "fetched", context };
}

/** Returns the path in a value that names a layout; `undefined` for other values. */
export function layoutPath(value: string): string | undefined {
  const [, rest] = /^oci-layout:\/\/(.*)$/is.exec(value) ?? [];
  return rest === undefined ? undefined : layoutPlace(rest).path;
}

/** Parses `PATH[:TAG][@DIGEST]`. */
function layoutPlace(text: string): LayoutPlace {
  const [, path = "", tag, digest] =
    /^(.*?)(?::(\w[\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/s.exec(text) ?? [];
  return { path, tag, digest };
}

function withoutName(given: string): BoughError {
  return usageError(
    wording`${{ option: "build-context" }} takes NAME=VALUE, not ${JSON.stringify(redactUrl(given))}`,
    wording`As in ${{ option: "build-context" }} lib=../lib, or ${{ option: "build-context" }} alpine=docker-image://alpine:3.20.`,
  );
}

/** Returns the name as instructions are matched with it. Requires that of an image, as BuildKit does. */
function checkedName(name: string): string {
  if (/^\d+$/.test(name)) {
    throw usageError(
      wording`${{ option: "build-context" }} ${name}: a number means a stage by its place in the Dockerfile`,
      "Give the stage a name (FROM ... AS NAME), and replace that.",
    );
  }
  try {
    parseReference(name);
  } catch (error) {
    throw new BoughError(wording`${{ option: "build-context" }} ${name}: invalid name: ${messageOf(error)}`, {
      kind: "usage",
      hint: "Give the name as FROM or --from has it: of a stage, an image or of your choice, in lower case.",
      cause: error,
    });
  }
  return contextName(name);
}

function imageIn(reference: string, name: string, value: string): string {
  try {
    if (parseReference(reference).kind !== "local") return reference;
  } catch (error) {
    throw new BoughError(wording`${{ option: "build-context" }} ${name}=${value}: ${messageOf(error)}`, {
      kind: "usage",
      hint: `As in ${name}=docker-image://alpine:3.20.`,
      cause: error,
    });
  }
  throw usageError(
    wording`${{ option: "build-context" }} ${name}=${value}: this is not an image's name`,
    wording`For an OCI layout write ${name}=oci-layout://PATH:TAG.${wording` ${{ command: "images import" }} imports other formats.`}`,
  );
}

function refusedTarget(name: string, value: string): BoughError {
  return usageError(
    wording`not supported: ${{ option: "build-context" }} ${name}=${value}: a target is one of a bake file`,
    wording`${wording`${{ command: "bake" }} builds targets of each other.`} Of one build: tag the target, then give ${name}=docker-image://TAG.`,
  );
}
