import { expect, test } from "bun:test";
import { startFakeService } from "../fake-service/fake-service.ts";
import { clientOf } from "./client.ts";

test.each<[name: string, answer: unknown, extensions: readonly string[]]>([
  ["names some", { extensions: ["resource-limits", "x"] }, ["resource-limits", "x"]],
  ["names none", { permissions: {} }, []],
  ["sends no list as extensions", { extensions: { mounts: true } }, []],
  ["names some that are not texts", { extensions: [1, null, "x"] }, ["x"]],
  ["has no such route", undefined, []],
])("extensions of a service that %s", async (_, answer, extensions) => {
  const fake = await startFakeService({
    intercept: () =>
      Response.json(answer ?? { error: "no such route" }, { status: answer === undefined ? 404 : 200 }),
  });
  try {
    expect([...(await clientOf(fake.url).service.capabilities.extensions())]).toEqual([...extensions]);
  } finally {
    await fake.close();
  }
});
