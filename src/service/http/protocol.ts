/**
 * Uses HTTP/2 if the service chooses it: many small requests share one connection and one handshake. Bun's fetch offers one protocol
 * at a time, and fails if the server chooses another. So a process probes the service beside its first request, and stores the
 * protocol.
 */
import type { Clock } from "../../clock.ts";
import { asRecord } from "./json.ts";

export type Protocol = "http1.1" | "http2";

/** Stores the protocol for later processes, with the time. An empty text means that it is unknown. */
export interface KnownProtocol {
  get(): string | undefined;
  set(protocol: string): void;
}

interface ProtocolsOptions {
  clock: Clock;
  /** True if the address has TLS, in which the protocol is chosen. */
  isSecure: boolean;
  known: KnownProtocol | undefined;
  /** Sends a request that changes nothing over HTTP/2. */
  probe: () => Promise<unknown>;
}

interface Protocols {
  /** Returns the protocol for the next request. */
  choose(): Protocol;
  /** Has to be called when a request over HTTP/2 has got a response. */
  recordResponse(): void;
  /** Has to be called when a request over HTTP/2 got no response. Returns true if the server has rejected the protocol. */
  recordFailure(error: unknown): boolean;
}

/** The service is probed again after a month. */
const keptMilliseconds = 30 * 24 * 60 * 60 * 1000;
/** After so many successive requests without a response, this process uses HTTP/1.1, and the stored protocol is removed. */
const maxFailures = 2;

export function createProtocols({ clock, isSecure, known, probe }: ProtocolsOptions): Protocols {
  let chosen: Protocol | undefined = isSecure ? stored() : "http1.1";
  let isProbed = false;
  let failures = 0;

  function stored(): Protocol | undefined {
    const [protocol, since] = (known?.get() ?? "").split(" ");
    if (!(clock.now() - Number(since) < keptMilliseconds)) return undefined;
    return protocol === "http2" || protocol === "http1.1" ? protocol : undefined;
  }

  function learn(protocol: Protocol): void {
    chosen = protocol;
    store(`${protocol} ${clock.now()}`);
  }

  /** Stores a protocol, unless the command has closed its store already. The next command then probes again. */
  function store(text: string): void {
    try {
      known?.set(text);
    } catch {
      // A further probe costs little.
    }
  }

  return {
    choose() {
      if (chosen === undefined && !isProbed) {
        isProbed = true;
        probe().then(
          () => learn("http2"),
          (error: unknown) => {
            if (isUnsupported(error)) learn("http1.1");
          },
        );
      }
      return chosen ?? "http1.1";
    },
    recordResponse() {
      failures = 0;
    },
    recordFailure(error) {
      if (isUnsupported(error)) {
        learn("http1.1");
        return true;
      }
      failures++;
      if (failures === maxFailures) {
        chosen = "http1.1";
        store("");
      }
      return false;
    },
  };
}

/** Returns true for fetch's error about the protocol, which ofetch wraps. */
function isUnsupported(error: unknown): boolean {
  const code = (value: unknown) => asRecord(value)?.code;
  return code(error) === unsupported || (error instanceof Error && code(error.cause) === unsupported);
}

const unsupported = "HTTP2Unsupported";
