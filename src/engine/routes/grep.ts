import { jsonResponse, RequestError } from "../http/answers.ts";
import { readChoice, readNumber, readTexts } from "../http/query.ts";
import { grepFiles } from "../inspect/grep.ts";
import { findInView, viewImage } from "../inspect/image-path.ts";
import type { Route } from "../router.ts";

const maxMatches = 10_000;
const defaultMatches = 1000;

export const grepRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/inspect/:uuid/grep",
    async answer(call) {
      const { url, state, request } = call;
      const patterns = readTexts(url, "pattern");
      if (patterns.length === 0) throw new RequestError(400, "pattern is missing");
      const paths = readTexts(url, "path");
      const query = {
        patterns,
        globs: readTexts(url, "glob"),
        case: readChoice(url, "case", ["smart", "sensitive", "insensitive"]) ?? "smart",
        maxCount: readNumber(url, "max_count", 1, maxMatches),
        maxTotal: readNumber(url, "max_total", 1, maxMatches) ?? defaultMatches,
        before: readNumber(url, "before", 0, 1000) ?? 0,
        after: readNumber(url, "after", 0, 1000) ?? 0,
      } as const;
      using view = await viewImage(call);
      const places = (paths.length === 0 ? ["/"] : paths).map((path) => findInView(view, path));
      const found = await grepFiles(places, query, { ...state, signal: request.signal });
      return jsonResponse({ path: paths.join(",") || "/", patterns, ...found });
    },
  },
];
