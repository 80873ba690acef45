# Prints each activity as a line of JSON. Run it with NAS_API_KEY set to a key for reports.
import json, os, time, urllib.parse, urllib.request

place = "place.txt"  # where the next run continues
after = open(place).read() if os.path.exists(place) else ""
while True:
    query = urllib.parse.urlencode({"limit": 1000, **({"after": after} if after else {})})
    request = urllib.request.Request("BASE_URL/api/activity?" + query)
    request.add_header("Authorization", "Bearer " + os.environ["NAS_API_KEY"])
    with urllib.request.urlopen(request, timeout=30) as response:
        page = json.load(response)
    for activity in page["activities"]:
        print(json.dumps(activity), flush=True)
    if page["next"] and page["next"] != after:
        after = page["next"]
        with open(place + ".new", "w") as file:
            file.write(after)
        os.replace(place + ".new", place)
    if len(page["activities"]) < 1000:
        time.sleep(30)
