import { keepPromises } from "./keep-promises.ts";

keepPromises("six calls");
