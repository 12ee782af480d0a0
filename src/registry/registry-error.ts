import { BoughError } from "../errors.ts";
import type { ConnectionFaultKind } from "../service/http/connection.ts";
import { type CallName, callName, printable, serverMessage, statusName } from "../service/http/errors.ts";
import { asRecord, asText, parseRecord } from "../service/http/json.ts";

interface Details {
  /** The status of the response; `undefined` without a response. */
  status?: number | undefined;
  /** True if another attempt may succeed. */
  isTransient: boolean;
  /** How long the registry asks to wait. */
  retryAfterMilliseconds?: number | undefined;
  /** Why there is no response. */
  fault?: ConnectionFaultKind | undefined;
  hint?: string | undefined;
  cause?: unknown;
}

/** Thrown for a failed request to a registry. */
export class RegistryError extends BoughError {
  override readonly name: string = "RegistryError";
  readonly status: number | undefined;
  readonly isTransient: boolean;
  readonly retryAfterMilliseconds: number | undefined;

  readonly fault: ConnectionFaultKind | undefined;

  constructor(message: string, { status, isTransient, retryAfterMilliseconds, fault, hint, cause }: Details) {
    super(message, { hint, cause });
    this.status = status;
    this.isTransient = isTransient;
    this.retryAfterMilliseconds = retryAfterMilliseconds;
    this.fault = fault;
  }
}

/** Thrown if a registry has stored something else than what was sent, by the digest in its response. */
export class WrongDigestError extends RegistryError {
  constructor(registry: string, sent: string, stored: string) {
    super(`${registry} has stored ${stored} in place of ${sent}, which it was sent`, {
      isTransient: false,
      hint: "A proxy in between may change what it passes on, or the registry itself.",
    });
  }
}

/** Thrown if a registry returns another manifest than the requested digest: it may not be a registry at all. */
export class WrongManifestError extends RegistryError {
  constructor(registry: string, digest: string) {
    super(`${registry} returns something else for the manifest ${digest}`, {
      isTransient: false,
      hint: `Is ${registry} a registry? A proxy or another web server may respond in its place.`,
    });
  }
}

/** Returns the message for a response: method, address, status, and the registry's own message. */
export function responseText(call: CallName, status: number, body: string): string {
  const message = messageIn(body);
  const responded = `${callName(call)} responded with ${statusName(status)}`;
  return message === undefined ? responded : `${responded}: ${message}`;
}

/** Returns the codes of all errors in a response: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes */
export function codesIn(body: string): string[] {
  const errors = parseRecord(body)?.errors;
  return (Array.isArray(errors) ? errors : []).flatMap((error) => asText(asRecord(error)?.code) ?? []);
}

function messageIn(body: string): string | undefined {
  try {
    const record = asRecord(JSON.parse(body));
    const first = Array.isArray(record?.errors) ? asRecord(record.errors[0]) : undefined;
    // https://twitchtv.github.io/twirp/docs/spec_v7.html#error-codes
    const twirp = asText(record?.msg);
    if (twirp !== undefined) return printable(twirp).slice(0, maxCharacters);
    const code = asText(first?.code)?.toLowerCase().replaceAll("_", " ");
    const message = asText(first?.message) ?? code;
    if (message !== undefined)
      return printable(
        code === undefined || message.toLowerCase().includes(code) ? message : `${code}: ${message}`,
      ).slice(0, maxCharacters);
  } catch {
    // Not JSON.
  }
  return serverMessage(body);
}

const maxCharacters = 500;
