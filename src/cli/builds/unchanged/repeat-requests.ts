import { withDeadline } from "../../../service/http/deadline.ts";
import { createExchange } from "../../../service/http/exchange.ts";
import type { Invocation } from "../../command-line/command.ts";
import { addressOf } from "../../service/choice.ts";
import type { BuildIdentity } from "./identity.ts";
import { digestResponse, type RecordedRequest } from "./recorded-requests.ts";

/** The deadline of each request. For a slower service the build runs, and shows its progress. */
const milliseconds = 1000;

/** Repeats the requests. Returns false at the first response that differs. Rejects if there is no response. */
export async function responsesMatch(
  requests: readonly RecordedRequest[],
  { choice }: BuildIdentity,
  { runtime }: Invocation,
): Promise<boolean> {
  if (choice.kind === "embedded") return false;
  const { clock, fetch, signal: parent } = runtime;
  const exchange = createExchange({ clock, fetch, ...addressOf(choice, runtime) });
  for (const request of requests) {
    const { method, path, body } = request;
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    const responseDigest = await withDeadline({ clock, milliseconds, parent }, async (signal) =>
      digestResponse(request, await exchange.send({ method, path, headers }, body, signal)),
    );
    if (responseDigest !== request.responseDigest) return false;
  }
  return true;
}
