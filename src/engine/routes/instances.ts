import type { Route } from "../router.ts";

export const instanceRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/instances",
    // Loaded with the first command: a build that finds all of its layers cached runs none.
    answer: async (call) => (await import("../instances/start-instance.ts")).startInstance(call),
  },
];
