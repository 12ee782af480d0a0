/**
 * HTTP/2 where the service chooses it: many small requests share one connection and one handshake. A process that does not know
 * asks beside its first request, and the answer is remembered: Bun's fetch offers one protocol at a time, and fails if the server
 * chooses another.
 */
import type { Clock } from "../../clock.ts";
import { asRecord } from "./json.ts";

export type Protocol = "http1.1" | "http2";

/** Keeps the answer for later processes. Empty: nothing is known any more. */
export interface KnownProtocol {
  get(): string | undefined;
  set(answer: string): void;
}

interface ProtocolsOptions {
  clock: Clock;
  /** True if the address has TLS, in which the protocol is chosen. */
  isSecure: boolean;
  known: KnownProtocol | undefined;
  /** Sends a request that changes nothing over HTTP/2. */
  ask: () => Promise<unknown>;
}

interface Protocols {
  /** Returns the protocol for the next request. */
  choose(): Protocol;
  /** Notes that a request over HTTP/2 got a response. */
  noteAnswer(): void;
  /** Notes that a request over HTTP/2 got no response. Returns true if the server has not accepted the protocol. */
  noteFailure(error: unknown): boolean;
}

/** After a month the service is asked again. */
const forgottenMilliseconds = 30 * 24 * 60 * 60 * 1000;
/** After so many successive requests without a response, this process uses HTTP/1.1, and the answer is forgotten. */
const maxFailures = 2;

export function createProtocols({ clock, isSecure, known, ask }: ProtocolsOptions): Protocols {
  let chosen: Protocol | undefined = isSecure ? remembered() : "http1.1";
  let isAsked = false;
  let failures = 0;

  function remembered(): Protocol | undefined {
    const [protocol, since] = (known?.get() ?? "").split(" ");
    if (!(clock.now() - Number(since) < forgottenMilliseconds)) return undefined;
    return protocol === "http2" || protocol === "http1.1" ? protocol : undefined;
  }

  function learn(protocol: Protocol): void {
    chosen = protocol;
    keep(`${protocol} ${clock.now()}`);
  }

  /** The answer may come when the command has closed its store; then the next one asks again. */
  function keep(answer: string): void {
    try {
      known?.set(answer);
    } catch {
      // Only a question more.
    }
  }

  return {
    choose() {
      if (chosen === undefined && !isAsked) {
        isAsked = true;
        ask().then(
          () => learn("http2"),
          (error: unknown) => {
            if (isUnsupported(error)) learn("http1.1");
          },
        );
      }
      return chosen ?? "http1.1";
    },
    noteAnswer() {
      failures = 0;
    },
    noteFailure(error) {
      if (isUnsupported(error)) {
        learn("http1.1");
        return true;
      }
      failures++;
      if (failures === maxFailures) {
        chosen = "http1.1";
        keep("");
      }
      return false;
    },
  };
}

/** ofetch wraps what fetch threw. */
function isUnsupported(error: unknown): boolean {
  const code = (value: unknown) => asRecord(value)?.code;
  return code(error) === unsupported || (error instanceof Error && code(error.cause) === unsupported);
}

const unsupported = "HTTP2Unsupported";
