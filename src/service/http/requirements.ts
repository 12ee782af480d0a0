/** Requirements of callers for a response. */
import type { Requirement } from "./answer.ts";
import { asRecord, idIn } from "./json.ts";

export const anObject: Requirement = {
  what: "a JSON object",
  isMet: ({ body }) => asRecord(body) !== undefined,
};

/**
 * Requires `{<name>: [...]}`, or the list alone. Some services return null for an empty one, or `{}` if its field is `optional` in
 * the API.
 */
export function aList(name: string, { optional = false } = {}): Requirement {
  return {
    what: `a list of ${name}`,
    isMet({ body }) {
      const record = asRecord(body);
      const list = record?.[name];
      const isLeftOut = optional && record !== undefined && Object.keys(record).length === 0;
      return Array.isArray(body) || Array.isArray(list) || list === null || isLeftOut;
    },
  };
}

/** A longer list is of no use to people, and would fill this machine's memory. */
export const maxListed = 200_000;

export function listIn(body: unknown, name: string): unknown[] {
  const list = Array.isArray(body) ? body : asRecord(body)?.[name];
  return Array.isArray(list) ? list : [];
}

export const aFileId: Requirement = {
  what: "the file's uuid",
  isMet: ({ body }) => idIn(asRecord(body)) !== undefined,
};
