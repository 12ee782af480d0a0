/** The requests of a FROM, and which of them wait for others: each such wait is a round trip to a service far away. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let service: FakeService;
let place: { context: string; state: string };
beforeEach(async () => {
  service = await startFakeService();
  place = { context: temporaryDirectory(), state: temporaryDirectory() };
});
afterEach(() => service.close());

/** Builds, and returns the requests of the FROM. */
async function requestsOfBase(reference: string): Promise<string[]> {
  service.clearRequests();
  writeFiles(place.context, { Dockerfile: `FROM ${reference}\n` });
  expect((await boughOn(service, ["build", "."], place)).exitCode).toBe(0);
  // At the end of a cached build its image is looked up by its id.
  return service.requests
    .filter(({ query }) => query.uuid === undefined)
    .map(({ method, path, query }) =>
      [method, path.replace(/[0-9a-f-]{36}/, "ID"), query.tag].filter(Boolean).join(" "),
    );
}

/** Holds all look-ups until there are two: the build would hang if one waited for the other. */
function holdUntilBoth(): void {
  const both = Promise.withResolvers<void>();
  service.intercept = async ({ url }) => {
    if (new URL(url).pathname !== "/v1/images") return undefined;
    if (service.requestsTo("GET /v1/images").length === 2) both.resolve();
    await both.promise;
    return undefined;
  };
}

const look = (name: string) => `GET /v1/images ${name}`;

test("both names are looked up at once, and an import takes two round trips more", async () => {
  holdUntilBoth();
  const requests = await requestsOfBase("alpine:3.20");
  expect(requests.slice(0, 2).sort()).toEqual([look("alpine:3.20"), look("docker.io/library/alpine:3.20")]);
  // What the service can do is asked beside the import, not after it.
  expect(requests.slice(2).filter((request) => request !== "GET /v1/whoami")).toEqual([
    "POST /v1/images/import",
    "GET /v1/operations/ID/events",
  ]);
  service.intercept = undefined;
  expect(await requestsOfBase("alpine:3.20")).toEqual([look("alpine:3.20")]);
});

test("a name that the service has listed is looked up alone from then on", async () => {
  service.state.addImage("base:1");
  holdUntilBoth();
  expect(await requestsOfBase("base:1")).toHaveLength(2);
  service.intercept = undefined;
  expect(await requestsOfBase("base:1")).toEqual([look("base:1")]);
  service.state.tags.clear();
  service.state.addImage("docker.io/library/base:1");
  const inTurn = [look("base:1"), look("docker.io/library/base:1")];
  expect(await requestsOfBase("base:1")).toEqual(inTurn);
});

test("a failure to look up the other name does not matter if the image has the written one", async () => {
  service.state.addImage("base:1");
  service.intercept = ({ url }) =>
    url.includes("docker.io") ? Response.json({ error: "no" }, { status: 401 }) : undefined;
  expect(await requestsOfBase("base:1")).toContain(look("base:1"));
});

test("two look-ups that are refused at once leave out no form of the query, and end", async () => {
  const both = Promise.withResolvers<void>();
  service.intercept = async ({ url }) => {
    if (new URL(url).pathname !== "/v1/images") return undefined;
    if (service.requestsTo("GET /v1/images").length === 2) both.resolve();
    await both.promise;
    return Response.json({ error: "no such parameter" }, { status: 400 });
  };
  const requests = await requestsOfBase("alpine:3.20");
  const limits = service.requestsTo("GET /v1/images").map(({ query }) => query.limit ?? "none");
  expect(new Set(limits)).toEqual(new Set(["1000", "100", "none"]));
  expect(requests).toContain("POST /v1/images/import");
});
