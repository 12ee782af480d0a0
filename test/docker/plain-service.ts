import { asRecord } from "../../src/service/http/json.ts";
import { findUnknownField } from "../fake-service/request-fields.ts";

type Answer = (request: Request) => Promise<Response>;

/** What its lists say of an image all the same. */
const kept = ["config", "identity"];

/** Makes the engine a service without extensions of the API's document but those of its lists: it reports and takes no other. */
export function hideExtensions(engine: Answer): Answer {
  return async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/whoami") {
      const account = (await (await engine(request)).json()) as Record<string, unknown>;
      return Response.json({ ...account, extensions: kept });
    }
    if (/^\/v1\/inspect\/[^/]+\/digest$/.test(pathname)) return refuse(404, `no ${pathname}`);
    if (request.method !== "POST" || pathname !== "/v1/instances") return engine(request);
    const body = asRecord(await request.clone().json());
    if (body?.command === "") return refuse(400, "command is required");
    const unknown = findUnknownField(body, "InstanceSpawnRequest");
    return unknown === undefined ? engine(request) : refuse(400, `${unknown} is not a known field`);
  };
}

function refuse(status: number, error: string): Response {
  return Response.json({ error }, { status });
}
