/** Addresses of a service's operations. The form of the addresses is detected once. */

import type { RequestParts } from "../http/exchange.ts";
import { asId } from "../http/json.ts";
import type { ServiceResponse } from "../http/response.ts";
import { operationIdsIn, operationNounsIn } from "../wire/reader/ids.ts";
import { linksInHeaders, operationLinksIn } from "../wire/reader/links.ts";

export type Address = Pick<RequestParts, "path" | "query">;

/** An address that may be an operation's. `isGuess`: the service has not named it, and no record was found at such an address yet. */
interface PossibleAddress extends Address {
  isGuess: boolean;
}

export interface OperationAddresses {
  /**
   * Returns the id of the operation in a response to a request of this path, and remembers its addresses. `undefined` if there is
   * none.
   */
  read(answer: ServiceResponse, path: string): string | undefined;
  /** Returns the addresses that its record may have, the most likely first. One, if it is known where such records are. */
  candidates(operation: string): readonly PossibleAddress[];
  /** Remembers where a record was found: others of the same kind are there, too. */
  learn(operation: string, address: Address): void;
  /** Returns the address of the operation itself. */
  addressOf(operation: string): Address;
  /** Returns the address of its events. */
  eventsOf(operation: string): Address;
}

/** An operation whose id or address the response to its request has named. */
interface NamedOperation {
  /** The path of the request. */
  requested: string;
  /** Ids besides its own that the response has. */
  otherIds: readonly string[];
  location: Address | undefined;
  links: readonly Address[];
  /** What the response calls operations. */
  nouns: readonly string[];
}

/** The form of a record's address: one that the response has named, or a path with the id in place of `{id}`. */
type Source = "location" | "link" | { template: string };

interface Candidate {
  source: Source;
  address: Address;
}

const usualTemplates = ["/v1/operations/{id}", "/v1/instances/{id}"];
const usual = "/v1/operations/{id}";
/** The maximum of further ids in a response that are tried: the likely ones come first. */
const maxOtherIds = 3;

/** `base`: the service's address. */
export function createOperationAddresses(base: URL): OperationAddresses {
  const named = new Map<string, NamedOperation>();
  /** By the path of the request that started the operation. */
  const learnt = new Map<string, Source>();

  function allOf(operation: string): Candidate[] {
    const { requested, otherIds = [], location, links = [], nouns = [] } = named.get(operation) ?? {};
    const ids = [operation, ...otherIds];
    const own = requested === undefined ? [] : [`${requested}/{id}`];
    const image = requested === importPath ? ["/v1/images/{id}"] : [];
    const others = nouns.map((noun) => `/v1/${noun}s/{id}`);
    const templates = [...new Set([...usualTemplates, ...own, ...image, ...others])];
    // `operations/ID` is the end of its address.
    const whole = operation.includes("/")
      ? [{ source: "link" as const, address: { path: `/v1/${operation}` } }]
      : [];
    const hasId = ({ path }: Address) => ids.some((id) => path.includes(encodeURIComponent(id)));
    const asLink = (address: Address): Candidate => ({ source: "link", address });
    const first: Candidate[] = [
      ...(location === undefined ? [] : [{ source: "location" as const, address: location }]),
      ...links.filter(hasId).map(asLink),
      ...whole,
      ...templates.flatMap((template) => ids.map((id) => fromTemplate(template, id))),
    ];
    const statuses = first.map(({ source, address }) => ({
      source: typeof source === "object" ? { template: `${source.template}/status` } : source,
      address: { ...address, path: `${address.path.replace(/\/+$/, "")}/status` },
    }));
    return [...first, ...statuses, ...links.filter((link) => !hasId(link)).map(asLink)];
  }

  function candidatesOf(operation: string): Candidate[] {
    const requested = named.get(operation)?.requested;
    const known = requested === undefined ? [...learnt.values()] : [learnt.get(requested) ?? []].flat();
    const all = allOf(operation);
    const fitting = known.flatMap((source) =>
      typeof source === "object"
        ? fromTemplate(source.template, operation)
        : all.filter((candidate) => candidate.source === source).slice(0, 1),
    );
    if (requested !== undefined && fitting[0] !== undefined) return [fitting[0]];
    return [...fitting, ...all].filter(isFirst);
  }

  const addressOf = (operation: string): Address => {
    const { path, query } = candidatesOf(operation)[0]?.address ?? { path: pathOf(usual, operation) };
    return { path: path.replace(/\/status$/, ""), ...(query === undefined ? {} : { query }) };
  };

  return {
    read(answer, path) {
      const [first = null, ...further] = linksInHeaders(answer.headers);
      const location = addressIn(first, base, path);
      const last = location?.path.split("/").findLast((name) => name !== "" && name !== "status");
      const ids = operationIdsIn(answer.body);
      const operation = ids[0] ?? asId(last === undefined ? undefined : decode(last));
      if (operation === undefined) return undefined;
      const links = [...further, ...operationLinksIn(answer.body)].flatMap(
        (link) => addressIn(link, base, path) ?? [],
      );
      // The record's own id may differ from the last part of its address.
      const [otherIds, nouns] = [ids.slice(1, 1 + maxOtherIds), operationNounsIn(answer.body)];
      named.set(operation, { requested: path, otherIds, location, links, nouns });
      return operation;
    },

    candidates(operation) {
      const all = candidatesOf(operation);
      const isGuess = ({ source }: Candidate) => all.length > 1 && typeof source === "object";
      return all.map((candidate) => ({ ...candidate.address, isGuess: isGuess(candidate) }));
    },

    learn(operation, { path }) {
      const requested = named.get(operation)?.requested ?? "";
      if (learnt.has(requested)) return;
      const found = allOf(operation).find(({ address }) => address.path === path);
      if (found !== undefined) learnt.set(requested, found.source);
    },

    addressOf,
    eventsOf(operation) {
      const { path, query } = addressOf(operation);
      return { path: `${path.replace(/\/+$/, "")}/events`, ...(query === undefined ? {} : { query }) };
    },
  };
}

const importPath = "/v1/images/import";

function fromTemplate(template: string, id: string): Candidate {
  return { source: { template }, address: { path: pathOf(template, id) } };
}

function pathOf(template: string, id: string): string {
  return template.replace("{id}", () => encodeURIComponent(id));
}

function isFirst({ address }: Candidate, index: number, all: readonly Candidate[]): boolean {
  const isSame = (other: Candidate) =>
    other.address.path === address.path &&
    JSON.stringify(other.address.query ?? {}) === JSON.stringify(address.query ?? {});
  return all.findIndex(isSame) === index;
}

/**
 * Reads `Location` or a link: absolute or relative, with the base address's prefix or without. Of another origin only the path is
 * used: the token is not sent there, and a service behind a proxy does not know its public address.
 */
function addressIn(location: string | null, base: URL, requested: string): Address | undefined {
  const prefix = base.pathname.replace(/\/+$/, "");
  // Some services mean `operations/ID` from `/v1/`, whatever was requested; `../operations/ID` is relative to the request.
  const from = new URL(
    `${base.origin}${prefix}${location?.startsWith("..") === true ? requested : "/v1/instances"}`,
  );
  if (location === null || !URL.canParse(location, from.href)) return undefined;
  const { pathname, searchParams } = new URL(location, from.href);
  const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname;
  return searchParams.size === 0 ? { path } : { path, query: Object.fromEntries(searchParams) };
}

function decode(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
