/** Each service follows the API's document: every call, every required field, and every refusal. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Contract, cases } from "./cases.ts";
import { type CallParts, callDocumented, documentedCalls } from "./client.ts";
import { refusals, runningRefusals } from "./refusals.ts";
import { services } from "./services.ts";

describe.each(services)("%s", (_, start) => {
  const made = new Set<string>();
  let contract: Contract;

  beforeAll(async () => {
    const service = await start();
    contract = {
      service,
      async call(call, parts) {
        const answer = await callDocumented(service.send, call, parts);
        if (parts?.error === undefined) made.add(call);
        return answer;
      },
    };
  }, 180_000);
  afterAll(() => contract.service.close());

  test.each(cases)("%s", (_name, run) => run(contract), 30_000);

  test.each(refusals)("refuses %s", async (_name, call, parts) => {
    await contract.call(call, fill(parts, { IMAGE: contract.service.image }));
  });

  test("refuses invalid requests about a running operation", async () => {
    const json = { image: contract.service.image, command: "sleep", args: ["100"], disposable: true };
    const { uuid } = (await contract.call("POST /instances", { json })).body as { uuid: string };
    for (const [, call, parts] of runningRefusals)
      await contract.call(call, fill(parts, { OPERATION: uuid }));
    await contract.call("DELETE /operations/{operationId}", { path: { operationId: uuid } });
  });

  test("supports every call of the document", () => {
    expect(documentedCalls.filter((call) => !made.has(call))).toEqual([]);
  });
});

function fill(parts: CallParts, names: Readonly<Record<string, string>>): CallParts {
  let text = JSON.stringify(parts);
  for (const [name, value] of Object.entries(names))
    text = text.replaceAll(`"${name}"`, JSON.stringify(value));
  return JSON.parse(text) as CallParts;
}
