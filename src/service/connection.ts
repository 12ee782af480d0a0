import { DeadlineError } from "./abort.ts";
import { asRecord, asText } from "./json.ts";

/** A call that got no usable answer, in terms of what may be done about it. */
export interface ConnectionFault {
  reason: string;
  hint?: string;
  /** False where the request provably never reached the service. */
  received: boolean;
  /** Trying again won't help. */
  permanent: boolean;
}

const neverReached: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "unknown host",
  EAI_AGAIN: "the host's name cannot be resolved at the moment",
  EHOSTUNREACH: "host unreachable",
  ENETUNREACH: "network unreachable",
};

/** What fetch threw, however it is wrapped. Names no header and no body. */
export function explainFault(error: unknown): ConnectionFault {
  const origin = rootOf(error);
  if (origin instanceof DeadlineError) return { reason: origin.message, received: true, permanent: false };
  if (origin instanceof Error && origin.name === "TimeoutError") {
    return { reason: "nothing passed over the connection for minutes", received: true, permanent: false };
  }
  const code = asText(asRecord(origin)?.code) ?? "";
  const known = neverReached[code];
  if (known !== undefined) {
    return {
      reason: known,
      hint: "Check the address and that the service runs.",
      received: false,
      permanent: false,
    };
  }
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/.test(code)) {
    return { reason: `the server's certificate is not accepted (${code})`, received: false, permanent: true };
  }
  if (code === "ECONNRESET")
    return {
      reason: "the connection was closed before the answer was complete",
      received: true,
      permanent: false,
    };
  if (code === "ZlibError" || /decompress/i.test(code)) {
    return { reason: "the answer's compression is broken", received: true, permanent: false };
  }
  const message = origin instanceof Error ? origin.message.split("\n", 1)[0] : undefined;
  return {
    reason: [message ?? "the connection failed", code === "" ? "" : `(${code})`].filter(Boolean).join(" "),
    received: true,
    permanent: false,
  };
}

/** ofetch wraps what fetch threw. */
function rootOf(error: unknown): unknown {
  let current = error;
  while (current instanceof Error && current.cause instanceof Error && !(current instanceof DeadlineError))
    current = current.cause;
  return current;
}
