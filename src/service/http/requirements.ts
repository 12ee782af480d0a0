/** Requirements of callers for a response. */

import { fileIdIn } from "../wire/reader/images.ts";
import { listIn as readList } from "../wire/reader/outputs.ts";
import type { Answer, Requirement } from "./answer.ts";
import { asId, asRecord } from "./json.ts";

export const anObject: Requirement = {
  what: "a JSON object",
  isMet: ({ body }) => asRecord(body) !== undefined,
};

/**
 * Requires `{<name>: [...]}`, the list alone, or one in another usual place. Some services return null for an empty one, or `{}` if its field is `optional` in
 * the API.
 */
export function aList(name: string, { optional = false } = {}): Requirement {
  return {
    what: `a list of ${name}`,
    isMet({ body }) {
      const record = asRecord(body);
      const isLeftOut = optional && record !== undefined && Object.keys(record).length === 0;
      return isLeftOut || readList(body, name) !== undefined;
    },
  };
}

/** A longer list is of no use to people, and would fill this machine's memory. */
export const maxListed = 200_000;

export function listIn(body: unknown, name: string): unknown[] {
  return readList(body, name) ?? [];
}

export const aFileId: Requirement = {
  what: "the file's uuid",
  isMet: (answer) => storedIdIn(answer) !== undefined,
};

/** Returns the id of a stored file: of the body, or the last segment of `Location`. */
export function storedIdIn({ body, headers }: Pick<Answer, "body" | "headers">): string | undefined {
  const last = headers
    .get("location")
    ?.split(/[?#]/)[0]
    ?.split("/")
    .findLast((part) => part !== "");
  return fileIdIn(body) ?? asId(last);
}
